package controller

import (
	"sync"
	"time"
)

// firstWrites has, for each key that own writes have queued, the time at which the first of these
// writes was sent. Its times are those of the barrier.
type firstWrites struct {
	mu   sync.Mutex // guards sent
	sent map[string]time.Duration
}

// add records an own write that leads to a call of a key.
func (f *firstWrites) add(key string, sent time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if earlier, ok := f.sent[key]; !ok || sent < earlier {
		f.sent[key] = sent
	}
}

// take removes a key, whose call begins.
func (f *firstWrites) take(key string) (sent time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent, ok = f.sent[key]
	delete(f.sent, key)
	return sent, ok
}

// lagOf returns the time from the sending of the first own write that has led to a call until now,
// when the call begins. It is 0 without such a write. The delay after an error is no lag.
func (r *run[T]) lagOf(key string, failures int) time.Duration {
	sent, ok := r.writes.take(key)
	if !ok || failures > 0 {
		return 0
	}
	lag := max(r.barrier.Now()-sent, 0)
	r.c.callLag.Observe(lag)
	return lag
}
