package debug

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// benchedInformers is the number of informers of the benchmarks, each with two handlers.
const benchedInformers = 50

// benched returns pages of informers that follow a server.
func benched(b *testing.B) *Handler {
	b.Helper()
	server := apisim.Options{}.Start(b)
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for n := range benchedInformers {
		informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Labels: fmt.Sprint("n=", n)})
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			_, err := informer.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
				OnAdd: func(*corev1.ConfigMap, bool) {},
			}, tidings.HandlerOptions{Name: name})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := factory.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := factory.WaitForSync(b.Context()); err != nil {
		b.Fatal(err)
	}
	h := New(Options{})
	if err := h.sources.Add(factory); err != nil { // without the goroutine of Add
		b.Fatal(err)
	}
	return h
}

// BenchmarkHistory measures one point of the history, of which there are six a minute, and the
// memory of a history that is full.
func BenchmarkHistory(b *testing.B) {
	h := benched(b)
	before := heapOf()
	at := time.Now()
	for range historyPoints {
		at = at.Add(historyPeriod)
		h.sampler.add(at, h.sample(), false, true)
	}
	full := heapOf() - before
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(historyPeriod)
		h.sampler.add(at, h.sample(), false, true)
	}
	b.ReportMetric(float64(full), "bytes-kept")
	runtime.KeepAlive(h)
}

// heapOf returns the bytes of the objects on the heap that are in use.
func heapOf() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkOverview measures a request of the first page with a history that is full.
func BenchmarkOverview(b *testing.B) {
	h := benched(b)
	for range historyPoints {
		h.sampler.add(time.Now(), h.sample(), false, true)
	}
	size := 0
	b.ReportAllocs()
	for b.Loop() {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, request("/"))
		size = answer.Body.Len()
	}
	b.ReportMetric(float64(size), "bytes-sent")
}
