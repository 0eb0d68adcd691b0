package measure

import (
	"runtime"
	"testing"
)

// TestUsage asks that what a function does is in its usage.
func TestUsage(t *testing.T) {
	var kept [][]byte
	usage, err := Of(func() error {
		for range 100 {
			kept = append(kept, make([]byte, 1<<20))
		}
		for i := range kept {
			for j := range kept[i] {
				kept[i][j] = byte(i * j)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if usage.Bytes < 100<<20 || usage.Allocations < 100 {
		t.Errorf("100 MiB in 100 parts are reported as %d bytes in %d parts", usage.Bytes, usage.Allocations)
	}
	if usage.CPU <= 0 || usage.Wall <= 0 {
		t.Errorf("writing 100 MiB took %v of CPU and %v", usage.CPU, usage.Wall)
	}
	runtime.KeepAlive(kept)
}

// TestMemory asks that memory which is held, and then let go of, shows.
func TestMemory(t *testing.T) {
	const size = 64 << 20
	before := Heap()
	resident, err := Resident()
	if err != nil {
		t.Fatal(err)
	}
	if err := ResetPeak(); err != nil {
		t.Fatal(err)
	}
	held := make([]byte, size)
	for i := range held {
		held[i] = byte(i)
	}
	if grown := Heap() - before; grown < size || Unswept() < before+size {
		t.Errorf("the heap grew by %d bytes, want at least %d", grown, size)
	}
	runtime.KeepAlive(held)
	held = nil
	if after := Heap(); after > before+size/2 {
		t.Errorf("the heap has %d bytes after letting go, %d before", after, before)
	}
	peak, err := Peak()
	if err != nil {
		t.Fatal(err)
	}
	if peak < resident+size/2 {
		t.Errorf("the peak is %d bytes, want about %d above %d", peak, size, resident)
	}
}
