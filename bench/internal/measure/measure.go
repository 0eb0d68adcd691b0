package measure

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Usage is the time and memory that the process used for a function.
type Usage struct {
	CPU, Wall     time.Duration // CPU is user and system time, garbage collection included
	Bytes, Allocs float64
}

// Of returns the usage of f.
func Of(b testing.TB, f func()) (u Usage) {
	b.Helper()
	read := func(sign float64) {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		heap := []metrics.Sample{
			{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/allocs:objects"},
		}
		metrics.Read(heap)
		u.CPU += time.Duration(sign) * time.Duration(r.Utime.Nano()+r.Stime.Nano())
		u.Bytes += sign * float64(heap[0].Value.Uint64())
		u.Allocs += sign * float64(heap[1].Value.Uint64())
	}
	read(-1)
	begin := time.Now()
	f()
	u.Wall = time.Since(begin)
	read(1)
	return u
}

// Add adds another Usage.
func (u *Usage) Add(other Usage) {
	u.CPU, u.Wall = u.CPU+other.CPU, u.Wall+other.Wall
	u.Bytes, u.Allocs = u.Bytes+other.Bytes, u.Allocs+other.Allocs
}

// Report reports the cost of each of n things and how many there were in a second.
func (u Usage) Report(b *testing.B, n int, thing string) {
	b.ReportMetric(float64(n)/u.Wall.Seconds(), thing+"s/s")
	b.ReportMetric(float64(u.CPU)/float64(n), "cpu-ns/"+thing)
	b.ReportMetric(u.Allocs/float64(n), "allocs/"+thing)
	b.ReportMetric(u.Bytes/float64(n), "B/"+thing)
}

// LiveHeap collects garbage and returns the bytes of the objects that are left.
func LiveHeap() float64 {
	runtime.GC()
	runtime.GC() // frees the memory that finalizers and pools released in the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// HeapBound is an upper bound of LiveHeap, at next to no cost.
func HeapBound() float64 {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return float64(heap[0].Value.Uint64())
}

// StackBytes returns the bytes of the stacks of goroutines.
func StackBytes() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.StackInuse)
}

// ResidentSet gives free memory back to the system and returns the resident set, in bytes.
func ResidentSet(b testing.TB) float64 {
	debug.FreeOSMemory()
	return status(b, "VmRSS")
}

// Peak returns the largest resident set since the process began, or since ResetPeak, in bytes.
func Peak(b testing.TB) float64 { return status(b, "VmHWM") }

// ResetPeak makes the present resident set the peak.
func ResetPeak(b testing.TB) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// status returns a line of /proc/self/status, in bytes.
func status(b testing.TB, name string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] == name+":" {
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kilobytes * 1024
		}
	}
	b.Fatalf("/proc/self/status has no %s", name)
	return 0
}
