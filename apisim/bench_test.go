package apisim

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// BenchmarkFanOut updates an object of 1 KB, and waits until 100 watches over HTTP have
// read the event: an operation is one write and its 100 frames.
func BenchmarkFanOut(b *testing.B) {
	const watches = 100
	server, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	client, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		b.Fatal(err)
	}
	given := configMap("a")
	given.Data = map[string]string{"k": strings.Repeat("x", 1000)}
	made, err := Create(b.Context(), server, given)
	if err != nil {
		b.Fatal(err)
	}
	var read sync.WaitGroup
	for range watches {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://apisim.invalid/api/v1/configmaps?watch=1&resourceVersion="+made.ResourceVersion, nil)
		if err != nil {
			b.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		go func() {
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				read.Done()
			}
		}()
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		read.Add(watches)
		given.Labels["n"] = fmt.Sprint(n)
		if _, err := server.Update(b.Context(), given); err != nil {
			b.Fatal(err)
		}
		if n%100 == 0 {
			read.Wait()
		}
	}
	read.Wait()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkIdleWatches opens 10,000 watches of a type without writes, and reports the heap and
// stacks of each, on both sides of its connection.
func BenchmarkIdleWatches(b *testing.B) {
	const watches = 10_000
	server, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	client, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		b.Fatal(err)
	}
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	for b.Loop() {
		before := held()
		var open []io.Closer
		for range watches {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://apisim.invalid/api/v1/secrets?watch=1&resourceVersion=5", nil)
			if err != nil {
				b.Fatal(err)
			}
			resp, err := client.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Fatal(resp, err)
			}
			open = append(open, resp.Body)
		}
		if running := len(server.Watches()); running != watches {
			b.Fatalf("%d watches are running", running)
		}
		b.ReportMetric(float64(held()-before)/watches, "B/watch")
		for _, body := range open {
			body.Close() //nolint:errcheck // it was only read
		}
	}
}
