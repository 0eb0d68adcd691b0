package view

import (
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/see/histogram"
)

// maxPending is the largest number of changes that a Lag keeps.
const maxPending = 100_000

// Lag measures the time from writes to their events. It matches them by resource version, in
// either order. It may be used from any goroutine; its zero value is ready.
type Lag struct {
	mu      sync.Mutex           // guards the rest
	pending map[string]time.Time // by version, for versions that were only written, or only seen
	counts  LagCounts
	times   histogram.Histogram
	longest time.Duration
	recent  time.Duration // longest since the last TakeRecent
}

// LagCounts are the numbers of all writes and of the seen ones.
type LagCounts struct{ Written, Seen uint64 }

// Written records the beginning of the write that led to a version.
func (l *Lag) Written(version string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Written++
	l.matchLocked(version, at)
}

// Seen records the arrival of the event with a version.
func (l *Lag) Seen(version string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.matchLocked(version, at)
}

func (l *Lag) matchLocked(version string, at time.Time) {
	other, ok := l.pending[version]
	if !ok {
		if l.pending == nil {
			l.pending = make(map[string]time.Time)
		}
		if len(l.pending) < maxPending {
			l.pending[version] = at
		}
		return
	}
	delete(l.pending, version)
	took := at.Sub(other).Abs()
	l.counts.Seen++
	l.longest, l.recent = max(l.longest, took), max(l.recent, took)
	l.times.Observe(took)
}

// Forget drops the writes that were not seen and the events without a write. After the restore of a
// backup, other writes may have their versions.
func (l *Lag) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.pending)
}

// Counts returns the counts so far.
func (l *Lag) Counts() LagCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// TakeRecent returns the longest time since its last call, 0 without a seen write.
func (l *Lag) TakeRecent() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	recent := l.recent
	l.recent = 0
	return recent
}

// Quantile returns an upper bound of the fraction q of all times, at most twice the longest of
// these, and 0 without times.
func (l *Lag) Quantile(q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.times.Durations().Quantile(q), l.longest)
}
