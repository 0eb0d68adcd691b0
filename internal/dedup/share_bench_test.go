package dedup

import (
	"reflect"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkShare decodes a population with the generated code and keeps all of it, as
// a source that decodes by itself does, with and without a Sharer behind it. One
// operation is one population, the figures are for one object.
func BenchmarkShare(b *testing.B) {
	c := newCorpus(1, 40)
	pods := c.pods(500)
	b.Run("pods", func(b *testing.B) { shareEach(b, pods, &corev1.Pod{}) })
	shuffled := append([][]byte(nil), pods...)
	c.random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	b.Run("pods in random order", func(b *testing.B) { shareEach(b, shuffled, &corev1.Pod{}) })
	var scrambled [][]byte
	for range 8000 {
		scrambled = append(scrambled, encode(c.scrambled()))
	}
	b.Run("pods without repetition", func(b *testing.B) { shareEach(b, scrambled, &corev1.Pod{}) })
}

func shareEach(b *testing.B, all [][]byte, example Message) {
	for i, name := range []string{"all", "strings", "nothing"} {
		b.Run("sharing "+name, func(b *testing.B) { shareAll(b, all, example, Sharing(i)) })
	}
}

func shareAll(b *testing.B, all [][]byte, example Message, sharing Sharing) {
	t := reflect.TypeOf(example).Elem()
	var spent, live, mallocs float64
	for b.Loop() {
		kept := make([]any, len(all))
		liveBefore, mallocsBefore := memory()
		s := NewSharer(new(Table), SharerOptions{Sharing: sharing})
		spent -= cpu()
		for i, data := range all {
			into := reflect.New(t).Interface().(Message)
			if err := into.Unmarshal(data); err != nil {
				b.Fatal(err)
			}
			kept[i] = s.Share(into)
		}
		spent += cpu()
		liveAfter, mallocsAfter := memory()
		live += float64(liveAfter - liveBefore)
		mallocs += float64(mallocsAfter - mallocsBefore)
		runtime.KeepAlive(kept)
		runtime.KeepAlive(s)
	}
	objects := float64(b.N * len(all))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(spent/objects, "cpu-ns/obj")
	b.ReportMetric(live/objects, "heap-B/obj")
	b.ReportMetric(mallocs/objects, "allocs/obj")
}
