package dedup

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// cpu returns the CPU time of the process in nanoseconds, the garbage
// collector's included: other work on the machine moves it less than the clock.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

// memory returns the bytes that live in the heap after a collection, and the
// allocations so far.
func memory() (live, mallocs uint64) {
	for range 6 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.Mallocs
}

// BenchmarkDecode decodes a population and keeps all of it, as a cache does, so
// that the garbage collector has as much to do as it would have there. One
// operation is one population, the figures are for one object. Sharing nothing is what
// the generated code does. Some populations are also decoded without some of their fields.
func BenchmarkDecode(b *testing.B) {
	c := newCorpus(1, 40)
	pods := c.pods(500)
	b.Logf("pods of %d bytes", size(pods))
	b.Run("pods", func(b *testing.B) { decodeEach(b, pods, &corev1.Pod{}) })
	for name, drop := range map[string][]string{
		"managed fields":                  {"metadata.managedFields"},
		"environment":                     {"spec.containers.env"},
		"managed fields and environment":  {"metadata.managedFields", "spec.containers.env"},
		"all but the metadata and status": {"metadata.managedFields", "spec"},
	} {
		b.Run("pods without "+name, func(b *testing.B) { decodeEach(b, pods, &corev1.Pod{}, drop...) })
	}
	shuffled := append([][]byte(nil), pods...)
	c.random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	b.Run("pods in random order", func(b *testing.B) { decodeEach(b, shuffled, &corev1.Pod{}) })
	few := newCorpus(2, 3).pods(3000)
	b.Run("pods in threes", func(b *testing.B) { decodeEach(b, few, &corev1.Pod{}) })
	rand.Shuffle(len(few), func(i, j int) { few[i], few[j] = few[j], few[i] })
	b.Run("pods in threes in random order", func(b *testing.B) { decodeEach(b, few, &corev1.Pod{}) })
	var scrambled, deployments, configMaps [][]byte
	for i := range 8000 {
		scrambled = append(scrambled, encode(c.scrambled()))
		w := c.workload(i)
		deployments = append(deployments, encode(c.deployment(w)))
		configMaps = append(configMaps, encode(c.configMap(w, i)))
	}
	b.Run("pods without repetition", func(b *testing.B) { decodeEach(b, scrambled, &corev1.Pod{}) })
	b.Run("deployments", func(b *testing.B) { decodeEach(b, deployments, &appsv1.Deployment{}) })
	b.Run("config maps", func(b *testing.B) { decodeEach(b, configMaps, &corev1.ConfigMap{}) })
}

func size(all [][]byte) int {
	total := 0
	for _, data := range all {
		total += len(data)
	}
	return total / len(all)
}

func decodeEach(b *testing.B, all [][]byte, example Message, drop ...string) {
	for i, name := range []string{"all", "strings", "nothing"} {
		b.Run("sharing "+name, func(b *testing.B) { decodeAll(b, all, example, Sharing(i), drop) })
	}
}

func decodeAll(b *testing.B, all [][]byte, example Message, sharing Sharing, drop []string) {
	t := reflect.TypeOf(example).Elem()
	var spent, live, mallocs float64
	for b.Loop() {
		kept := make([]Message, len(all))
		liveBefore, mallocsBefore := memory()
		d, err := NewDecoder(new(Table), example, sharing).Without(drop...)
		if err != nil {
			b.Fatal(err)
		}
		spent -= cpu()
		for i, data := range all {
			into := reflect.New(t).Interface().(Message)
			if err := d.Unmarshal(data, into); err != nil {
				b.Fatal(err)
			}
			kept[i] = into
		}
		spent += cpu()
		liveAfter, mallocsAfter := memory()
		live += float64(liveAfter - liveBefore)
		mallocs += float64(mallocsAfter - mallocsBefore)
		runtime.KeepAlive(kept)
		runtime.KeepAlive(d)
	}
	objects := float64(b.N * len(all))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(spent/objects, "cpu-ns/obj")
	b.ReportMetric(live/objects, "heap-B/obj")
	b.ReportMetric(mallocs/objects, "allocs/obj")
}
