package view

import (
	"sync"
	"time"
)

// maxOpen bounds how many changes a Ledger waits for.
const maxOpen = 100_000

// Ledger matches the changes that were made with those that were seen, by the
// resource version that each was given. Whichever is noted first waits for the other.
type Ledger struct {
	mu      sync.Mutex // guards the rest
	made    map[string]time.Time
	seen    map[string]time.Time
	counts  LedgerCounts
	worst   time.Duration // since TakeWorst, -1 if there was no match
	overall Latency
}

// LedgerCounts say how much was made and how much of it was seen.
type LedgerCounts struct {
	Made, Seen uint64
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{made: make(map[string]time.Time), seen: make(map[string]time.Time), worst: -1}
}

// Made notes that the change with this version began at a time.
func (l *Ledger) Made(version string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Made++
	if seen, ok := l.seen[version]; ok {
		delete(l.seen, version)
		l.matchLocked(seen.Sub(at))
		return
	}
	if len(l.made) < maxOpen {
		l.made[version] = at
	}
}

// Seen notes that the change with this version arrived at a time.
func (l *Ledger) Seen(version string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if made, ok := l.made[version]; ok {
		delete(l.made, version)
		l.matchLocked(at.Sub(made))
		return
	}
	if len(l.seen) < maxOpen {
		l.seen[version] = at
	}
}

func (l *Ledger) matchLocked(took time.Duration) {
	l.counts.Seen++
	l.overall.Add(took)
	l.worst = max(l.worst, took)
}

// Counts returns how much was made and seen so far.
func (l *Ledger) Counts() LedgerCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// TakeWorst returns the longest time since it was last asked, and whether anything
// was seen since.
func (l *Ledger) TakeWorst() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	worst := l.worst
	l.worst = -1
	return worst, worst >= 0
}

// Latency returns a copy of the times of all changes so far.
func (l *Ledger) Latency() Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overall
}
