package view

import "runtime/metrics"

const heapMetric = "/memory/classes/heap/objects:bytes"

// Heap reads how much memory the objects of this process take. Its zero value is
// ready.
type Heap struct{ peak uint64 }

// Sample returns the present size.
func (h *Heap) Sample() uint64 {
	sample := []metrics.Sample{{Name: heapMetric}}
	metrics.Read(sample)
	size := sample[0].Value.Uint64()
	h.peak = max(h.peak, size)
	return size
}

// Peak returns the largest size that was sampled.
func (h *Heap) Peak() uint64 { return h.peak }
