package dedup

import (
	"reflect"
	"runtime"
	"testing"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"
)

// shareDecoded decodes objects with the generated code and shares each of them.
func shareDecoded(t *testing.T, s *Sharer, all [][]byte) []*corev1.Pod {
	t.Helper()
	pods := make([]*corev1.Pod, len(all))
	for i, data := range all {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		pods[i] = s.Share(pod).(*corev1.Pod)
	}
	return pods
}

// TestShareRestsAndWakes shares pods that have nothing in common until the sharer no
// longer looks, and then pods that have nearly everything in common, which it must notice.
func TestShareRestsAndWakes(t *testing.T) {
	c := newCorpus(5, 40)
	s := NewSharer(new(Table), SharerOptions{})
	var scrambled [][]byte
	for range 2000 {
		scrambled = append(scrambled, encode(c.scrambled()))
	}
	shareDecoded(t, s, scrambled[:1500])
	workers := s.table.plans.plan(reflect.TypeFor[corev1.Pod](), cut{}, inMemory).sharers.workers[ShareAll]
	if len(workers) != 1 {
		t.Fatalf("%d workers", len(workers))
	}
	account := &workers[0].objectStats
	rested := 0
	for _, data := range scrambled[1500:] {
		shareDecoded(t, s, [][]byte{data})
		if account.paused() {
			rested++
		}
	}
	if rested < 450 {
		t.Errorf("of 500 pods that have nothing in common, %d were not looked through", rested)
	}
	pods := shareDecoded(t, s, c.pods(60))
	if account.paused() {
		t.Error("pods of workloads are not looked through")
	}
	a, b := pods[len(pods)-2], pods[len(pods)-1]
	if reflect.ValueOf(a.Labels).UnsafePointer() != reflect.ValueOf(b.Labels).UnsafePointer() {
		t.Error("two pods of a workload have no labels in common")
	}
}

// TestShareKeepsNoValue drops all objects: only the values found lately are left, which are
// bounded, and goes when the table has gone round.
func TestShareKeepsNoValue(t *testing.T) {
	table := new(Table)
	s := NewSharer(table, SharerOptions{})
	pods := shareDecoded(t, s, newCorpus(1, 10).pods(50))
	large := weak.Make((*byte)(unsafe.Pointer(&pods[9].Spec.Containers[0].Env[0])))
	if stats := table.Stats(); stats.Values < 100 || stats.Strings < 100 {
		t.Fatalf("%+v: little was shared", stats)
	}
	runtime.GC()
	if large.Value() == nil {
		t.Error("a value that is in use is gone")
	}
	runtime.KeepAlive(pods)
	pods = nil
	runtime.GC()
	if large.Value() != nil {
		t.Error("a large value is in memory that no object has")
	}
	sweepAll(table, 2)
	shareDecoded(t, s, newCorpus(2, 1).pods(1))
	runtime.GC()
	sweepAll(table, 2)
	if stats := table.Stats(); stats.Values > 100 {
		t.Errorf("%+v: much is left that no object has", stats)
	}
}
