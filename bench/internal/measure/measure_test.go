package measure

import (
	"runtime"
	"testing"
)

// TestMeasure checks that the figures include memory that is in use, and not after its release.
func TestMeasure(t *testing.T) {
	const size = 64 << 20
	before, resident := LiveHeap(), ResidentSet(t)
	ResetPeak(t)
	var buffer []byte
	u := Of(t, func() {
		buffer = make([]byte, size)
		for i := range buffer {
			buffer[i] = byte(i)
		}
	})
	if u.Bytes < size || u.Allocs < 1 || u.CPU <= 0 || u.Wall <= 0 {
		t.Errorf("the usage of %d bytes is %+v", size, u)
	}
	// A tenth less, because objects of earlier tests may be freed meanwhile.
	if LiveHeap() < before+size*9/10 || HeapBound() < before+size*9/10 {
		t.Errorf("the heap grew by %.0f bytes, want at least %d", LiveHeap()-before, size)
	}
	runtime.KeepAlive(buffer)
	buffer = nil
	if after := LiveHeap(); after > before+size/2 {
		t.Errorf("the heap has %.0f bytes after the release, %.0f before", after, before)
	}
	if p := Peak(t); p < resident+size/2 {
		t.Errorf("the peak is %.0f bytes, want about %d above %.0f", p, size, resident)
	}
}
