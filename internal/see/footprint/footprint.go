package footprint

import (
	"maps"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/tidings-go/tidings/internal/see/inspect"
)

const (
	// sampledObjects is the number of objects of a cache that are measured.
	sampledObjects = 64
	// measured is the number of informers that an update measures, and fresh is the time for which
	// an estimate of their objects is good.
	measured, fresh = 10, time.Minute
)

// Memory is an estimate of the memory of an informer's cache.
type Memory struct {
	// Bytes is the sum of ObjectBytes, KeyBytes and IndexBytes.
	Bytes int `json:"bytes"`
	// ObjectBytes is the estimate for all objects: OwnBytes for each, and SharedBytes once. Memory
	// that several informers share counts for each of them.
	ObjectBytes int `json:"objectBytes"`
	// KeyBytes is the memory of the keys, and of the tree and the table that find an object by its
	// key.
	KeyBytes int `json:"keyBytes"`
	// IndexBytes is the memory of the indexes.
	IndexBytes int `json:"indexBytes"`
	// Sampled is the number of objects that were measured.
	Sampled int `json:"sampled"`
	// OwnBytes is the memory that an object has alone among them, on average, and SharedBytes the
	// memory that several have in common.
	OwnBytes    int `json:"ownBytes"`
	SharedBytes int `json:"sharedBytes"`
}

// Of measures an informer.
func Of(view inspect.View) Memory {
	m := sample(view)
	return m.extended(view)
}

func sample(view inspect.View) (m Memory) {
	w := walker{blocks: map[unsafe.Pointer]*block{}}
	for _, object := range view.Sample(sampledObjects) {
		w.add(object)
	}
	own, shared := w.bytes()
	m.Sampled, m.OwnBytes, m.SharedBytes = w.object, own/max(1, w.object), shared
	return m
}

// extended returns the sums for all objects that an informer caches now.
func (m Memory) extended(view inspect.View) Memory {
	usage := view.Usage()
	m.ObjectBytes, m.KeyBytes, m.IndexBytes = m.OwnBytes*usage.Objects+m.SharedBytes, usage.KeyBytes, 0
	for _, x := range usage.Indexes {
		m.IndexBytes += x.Bytes
	}
	m.Bytes = m.ObjectBytes + m.KeyBytes + m.IndexBytes
	return m
}

// Estimates keeps estimates by the names of informers. The zero value is ready.
type Estimates struct {
	mu   sync.Mutex // guards the rest
	kept map[string]estimate
}

type estimate struct {
	Memory
	at time.Time
}

// Update returns the estimates for informers by name. It measures the objects of up to 10 informers
// whose estimate is missing or older than a minute, the oldest first. Those that were never
// measured are not in the result.
func (e *Estimates) Update(views map[string]inspect.View) map[string]Memory {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, before := time.Now(), e.kept
	e.kept = make(map[string]estimate, len(views))
	due := slices.SortedFunc(maps.Keys(views), func(a, b string) int {
		return before[a].at.Compare(before[b].at)
	})
	found := make(map[string]Memory, len(views))
	for i, name := range due {
		last, known := before[name]
		if i < measured && (!known || now.Sub(last.at) >= fresh) {
			last, known = estimate{sample(views[name]), now}, true
		}
		if known {
			e.kept[name] = last
			found[name] = last.extended(views[name])
		}
	}
	return found
}
