package bench

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

// usage is what the process used for something.
type usage struct {
	cpu, wall     time.Duration // cpu is user and system time, garbage collection included
	bytes, allocs float64
}

// measured returns what f uses.
func measured(b testing.TB, f func()) (u usage) {
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
		u.cpu += time.Duration(sign) * time.Duration(r.Utime.Nano()+r.Stime.Nano())
		u.bytes += sign * float64(heap[0].Value.Uint64())
		u.allocs += sign * float64(heap[1].Value.Uint64())
	}
	read(-1)
	begin := time.Now()
	f()
	u.wall = time.Since(begin)
	read(1)
	return u
}

// add adds another usage.
func (u *usage) add(other usage) {
	u.cpu, u.wall = u.cpu+other.cpu, u.wall+other.wall
	u.bytes, u.allocs = u.bytes+other.bytes, u.allocs+other.allocs
}

// report reports the cost of each of n things and how many there were in a second.
func (u usage) report(b *testing.B, n int, thing string) {
	b.ReportMetric(float64(n)/u.wall.Seconds(), thing+"s/s")
	b.ReportMetric(float64(u.cpu)/float64(n), "cpu-ns/"+thing)
	b.ReportMetric(u.allocs/float64(n), "allocs/"+thing)
	b.ReportMetric(u.bytes/float64(n), "B/"+thing)
}

// liveHeap collects garbage and returns the bytes of the objects that are left.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // frees what finalizers and pools released in the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// heapBound is an upper bound of liveHeap, at next to no cost.
func heapBound() float64 {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return float64(heap[0].Value.Uint64())
}

// stackBytes returns the bytes of the stacks of goroutines.
func stackBytes() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.StackInuse)
}

// residentSet gives free memory back to the system and returns the resident set, in bytes.
func residentSet(b testing.TB) float64 {
	debug.FreeOSMemory()
	return status(b, "VmRSS")
}

// peak returns the largest resident set since the process began, or since resetPeak, in bytes.
func peak(b testing.TB) float64 { return status(b, "VmHWM") }

// resetPeak makes the present resident set the peak.
func resetPeak(b testing.TB) {
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

// TestMeasure checks that the figures include memory that is in use, and not after its release.
func TestMeasure(t *testing.T) {
	const size = 64 << 20
	before, resident := liveHeap(), residentSet(t)
	resetPeak(t)
	var buffer []byte
	u := measured(t, func() {
		buffer = make([]byte, size)
		for i := range buffer {
			buffer[i] = byte(i)
		}
	})
	if u.bytes < size || u.allocs < 1 || u.cpu <= 0 || u.wall <= 0 {
		t.Errorf("the usage of %d bytes is %+v", size, u)
	}
	// A tenth less, because objects of earlier tests may be freed meanwhile.
	if liveHeap() < before+size*9/10 || heapBound() < before+size*9/10 {
		t.Errorf("the heap grew by %.0f bytes, want at least %d", liveHeap()-before, size)
	}
	runtime.KeepAlive(buffer)
	buffer = nil
	if after := liveHeap(); after > before+size/2 {
		t.Errorf("the heap has %.0f bytes after the release, %.0f before", after, before)
	}
	if p := peak(t); p < resident+size/2 {
		t.Errorf("the peak is %.0f bytes, want about %d above %.0f", p, size, resident)
	}
}
