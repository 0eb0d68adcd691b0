package controller

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Call is a call that has returned. In JSON, durations are text, as in "1.5s".
type Call struct {
	// Number is the number of the call among those of its controller, from 1 on. The lines about the
	// call have it as "call".
	Number uint64 `json:"number"`

	Key   string          `json:"key"`
	Began time.Time       `json:"began"`
	Took  metav1.Duration `json:"took"`
	// Waited is the time for which the key was queued before the call.
	Waited metav1.Duration `json:"waited,omitzero"`
	// Lag is the time from the sending of the first own write that led to the call to the beginning of
	// the call. It is 0 without such a write, and for a call after an error.
	Lag metav1.Duration `json:"lag,omitzero"`
	// Reasons are the reasons of the call, up to eight different ones. MoreReasons counts the others.
	Reasons     []Reason `json:"reasons,omitempty"`
	MoreReasons int      `json:"moreReasons,omitzero"`
	// Failures is the number of failures of the key in a row before the call.
	Failures int `json:"failures,omitzero"`
	// Gone reports whether the call was for the end of the object.
	Gone bool `json:"gone,omitzero"`
	// Error is the text of the call's error, and RequeueAfter the delay of its result.
	Error        string          `json:"error,omitzero"`
	RequeueAfter metav1.Duration `json:"requeueAfter,omitzero"`

	place uint64 // in the order in which the calls returned, from 1 on
}

// describe describes a call that has returned for the log of calls.
func (c *call[T]) describe(took time.Duration) Call {
	r := &c.request
	d := Call{
		Number: c.lines.number, Key: r.Key, Began: c.began, Reasons: r.Reasons, MoreReasons: r.MoreReasons,
		Failures: r.Failures, Gone: r.Gone, Error: errorText(c.err),
	}
	d.Took.Duration, d.Waited.Duration, d.Lag.Duration = took, r.Waited, c.lag
	d.RequeueAfter.Duration = c.result.RequeueAfter
	return d
}

// keptCalls is the number of calls that a controller keeps, and the number of failed calls that it
// keeps besides.
const keptCalls = 1000

// callLog holds the last calls, and the last failed calls.
type callLog struct {
	begun atomic.Uint64

	mu          sync.Mutex // guards the rest
	made        uint64
	all, failed ring
}

// ring keeps the last calls that were added.
type ring struct {
	kept []Call
	next int
}

func (r *ring) add(c Call) {
	if len(r.kept) < keptCalls {
		r.kept = append(r.kept, c)
		return
	}
	r.kept[r.next] = c
	r.next = (r.next + 1) % keptCalls
}

// newest appends the calls of a key whose place is below before, the newest first.
func (r *ring) newest(list []Call, key string, before uint64) []Call {
	for i := range r.kept {
		c := r.kept[(r.next+len(r.kept)-1-i)%len(r.kept)]
		if (key == "" || c.Key == key) && c.place < before {
			list = append(list, c)
		}
	}
	return list
}

func (l *callLog) add(c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	c.place = l.made
	l.all.add(c)
	if c.Error != "" {
		l.failed.add(c)
	}
}

// Calls returns the last calls of a key, the newest first; for "", the calls of all keys. The
// controller keeps the last 1,000 calls, and the last 1,000 failed calls before them.
func (c *Controller[T]) Calls(key string) []Call {
	l := &c.callLog
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.all.newest(nil, key, math.MaxUint64)
	return l.failed.newest(list, key, l.made-min(l.made, keptCalls)+1)
}

// Waits says why keys wait: up to 100 of each state, those that have waited for the longest time
// first; with a key, why this one does. It visits every flow of keys.
func (c *Controller[T]) Waits(key string) []Wait {
	r := c.running.Load()
	if r == nil {
		return nil
	}
	return r.waits(key, c.Health(), c.callLog.lastErrors())
}

// Calls returns the last calls of a controller, as [Controller.Calls] does; nil if it does not run
// here, or has no such method.
func (m *Manager) Calls(controller, key string) []Call {
	if r, ok := m.runnerNamed(controller).(interface{ Calls(key string) []Call }); ok {
		return r.Calls(key)
	}
	return nil
}

// Waits says why keys of a controller wait, as [Controller.Waits] does; nil if it does not run here,
// or has no such method.
func (m *Manager) Waits(controller, key string) []Wait {
	if r, ok := m.runnerNamed(controller).(interface{ Waits(key string) []Wait }); ok {
		return r.Waits(key)
	}
	return nil
}

// runnerNamed returns the runner of a controller, nil if it does not run here.
func (m *Manager) runnerNamed(controller string) (runner Runner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.units {
		if u.Name == controller {
			runner = u.runner
		}
	}
	return runner
}
