package dedup

import (
	"fmt"
	"runtime"
	"testing"
)

// BenchmarkMaps decodes custom resources into maps and keeps all of them, as
// BenchmarkDecode does. Sharing nothing is what the API machinery does.
func BenchmarkMaps(b *testing.B) {
	c := newCorpus(1, 100)
	widgets := c.widgets(200)
	b.Run("widgets", func(b *testing.B) { mapsEach(b, widgets) })
	shuffled := append([][]byte(nil), widgets...)
	c.random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	b.Run("widgets in random order", func(b *testing.B) { mapsEach(b, shuffled) })
	b.Run("widgets each of its own", func(b *testing.B) { mapsEach(b, newCorpus(2, 1).widgets(8000)) })
	var scrambled [][]byte
	for range 8000 {
		scrambled = append(scrambled, c.scrambledWidget())
	}
	b.Run("widgets without repetition", func(b *testing.B) { mapsEach(b, scrambled) })
}

func mapsEach(b *testing.B, all [][]byte) {
	for i, name := range []string{"all", "strings", "nothing"} {
		b.Run(fmt.Sprintf("%d bytes, sharing %s", size(all), name), func(b *testing.B) {
			for b.Loop() {
				m := keepMaps(b, all, Sharing(i))
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(m.cpu, "cpu-ns/obj")
				b.ReportMetric(m.heap, "heap-B/obj")
				b.ReportMetric(m.allocated, "B/obj")
				b.ReportMetric(m.mallocs, "allocs/obj")
			}
		})
	}
}

// measured is what it took to decode an object and to keep it.
type measured struct{ cpu, heap, allocated, mallocs float64 }

// keepMaps decodes a population, each object once, and keeps it while it measures.
func keepMaps(t testing.TB, all [][]byte, sharing Sharing) measured {
	kept := make([]map[string]any, len(all))
	liveBefore, mallocsBefore := memory()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := NewMapDecoder(new(Table), widgets, sharing, nil)
	m := measured{cpu: -cpu()}
	for i, data := range all {
		var err error
		if kept[i], err = d.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
	}
	m.cpu += cpu()
	runtime.ReadMemStats(&after)
	live, mallocs := memory()
	runtime.KeepAlive(kept)
	runtime.KeepAlive(d)
	n := float64(len(all))
	return measured{m.cpu / n, float64(live-liveBefore) / n, float64(after.TotalAlloc-before.TotalAlloc) / n, float64(mallocs-mallocsBefore) / n}
}
