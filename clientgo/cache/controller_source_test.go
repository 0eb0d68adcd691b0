package cache_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestSourceDrops: what the source forgot to tell is found by the next list, and told
// then: adds that are not initial, updates, tombstones with the last known state.
func TestSourceDrops(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a", "b", "c")
		informer, handler := follow(t, newInformer, source)
		handler.take()
		source.AddDropWatch(newPod("d"))
		source.ModifyDropWatch(newPod("b"))
		source.DeleteDropWatch(newPod("c"))
		handler.want(t)
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a", "default/b", "default/c")
		source.ResetWatch()
		time.Sleep(5 * time.Second)
		handler.want(t, "update default/a 1→1", "update default/b 2→5", "tombstone default/c 3", "add default/d 4")
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a", "default/b", "default/d")
		same(t, "the version of the cache", informer.GetStore().LastStoreSyncResourceVersion(), "6")
	})
}

// TestSourceResets: a watch that is cut without a loss is followed by a new one.
func TestSourceResets(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		var handler recorder
		registration := addHandler(t, informer, &handler)
		run(t, informer)
		for range 5 {
			waitForSync(t, informer)
			source.ResetWatch()
			time.Sleep(time.Minute)
			source.Modify(newPod("a"))
			synctest.Wait()
		}
		if obj, _, _ := informer.GetStore().GetByKey("default/a"); versionOf(obj) != "6" {
			t.Errorf("the cache holds version %s, want 6", versionOf(obj))
		}
		if notes := handler.take(); len(notes) < 6 || notes[len(notes)-1] != "update default/a 5→6" {
			t.Errorf("the handler was told %q", notes)
		}
		if !registration.HasSynced() || !informer.HasSynced() {
			t.Error("it has forgotten that it has synced")
		}
	})
}

// TestSourceFailsAndHeals: a list that fails is read when the source has healed.
func TestSourceFailsAndHeals(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a")
		var healed atomic.Bool
		informer := newInformer(&script{watch: source.Watch, list: func(o metav1.ListOptions) (runtime.Object, error) {
			if healed.Load() {
				return source.List(o)
			}
			return nil, errors.New("out of order")
		}}, &corev1.Pod{}, noOptions)
		handler := record(t, informer)
		run(t, informer)
		handler.want(t)
		healed.Store(true)
		time.Sleep(time.Minute)
		waitForSync(t, informer)
		handler.want(t, "add default/a 1 initial")
	})
}
