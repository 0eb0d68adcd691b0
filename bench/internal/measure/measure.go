package measure

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is what a process has used up to a moment, or between two.
type Usage struct {
	// CPU is user and system time, Wall the time that passed.
	CPU, Wall time.Duration
	// Bytes and Allocations are what was allocated on the heap.
	Bytes, Allocations uint64
}

// start is what Wall is counted from.
var start = time.Now()

// Now returns what the process has used up to now.
func Now() (Usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("measure: getrusage: %w", err)
	}
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/allocs:objects"}}
	metrics.Read(samples)
	return Usage{
		CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Wall: time.Since(start),
		Bytes: samples[0].Value.Uint64(), Allocations: samples[1].Value.Uint64(),
	}, nil
}

// Sub returns what was used between before and u.
func (u Usage) Sub(before Usage) Usage {
	return Usage{u.CPU - before.CPU, u.Wall - before.Wall, u.Bytes - before.Bytes, u.Allocations - before.Allocations}
}

// Add returns the sum of two usages.
func (u Usage) Add(other Usage) Usage {
	return Usage{u.CPU + other.CPU, u.Wall + other.Wall, u.Bytes + other.Bytes, u.Allocations + other.Allocations}
}

// Of returns what f uses.
func Of(f func() error) (Usage, error) {
	before, err := Now()
	if err != nil {
		return Usage{}, err
	}
	if err := f(); err != nil {
		return Usage{}, err
	}
	after, err := Now()
	return after.Sub(before), err
}

// Heap collects garbage and returns the bytes of the objects that are left.
func Heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of in the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// Collection returns the CPU time of a garbage collection of everything: the least of five.
func Collection() (time.Duration, error) {
	var least time.Duration
	for i := range 5 {
		usage, err := Of(func() error { runtime.GC(); return nil })
		if err != nil {
			return 0, err
		}
		if i == 0 || usage.CPU < least {
			least = usage.CPU
		}
	}
	return least, nil
}

// Unswept returns the bytes of the heap's objects without collecting garbage first: an
// upper bound of what Heap returns, at next to no cost.
func Unswept() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// Stacks returns the bytes of the stacks of goroutines.
func Stacks() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.StackInuse
}

// Resident gives free memory back to the system and returns the resident set, in bytes.
func Resident() (uint64, error) {
	debug.FreeOSMemory()
	return status("VmRSS")
}

// Peak returns the largest resident set since the process began, or since ResetPeak, in
// bytes.
func Peak() (uint64, error) { return status("VmHWM") }

// ResetPeak makes the present resident set the peak.
func ResetPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("measure: reset the peak of the resident set: %w", err)
	}
	return nil
}

// status returns a line of /proc/self/status, in bytes.
func status(name string) (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("measure: %s is read from Linux' /proc: %w", name, err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("measure: %s: %w", name, err)
			}
			return n * 1024, nil
		}
	}
	return 0, fmt.Errorf("measure: /proc/self/status has no %s", name)
}
