package controller

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/health"
)

// State is the state of a controller.
type State string

// The states of a controller.
const (
	// StateStopped does not run.
	StateStopped State = "Stopped"
	// StateWaiting waits for its informers; Health.WaitingFor names them.
	StateWaiting State = "Waiting"
	// StateRunning makes calls.
	StateRunning State = "Running"
	// StateStale makes no calls, because an informer has heard nothing for longer than
	// Options.MaxStaleness.
	StateStale State = "Stale"
	// StateStopping waits for running calls.
	StateStopping State = "Stopping"
)

// Health describes a controller. It does not change after it was returned. In JSON, durations are
// text, as in "1.5s".
type Health struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// WaitingFor are the informers that the controller waits for, or the one that is stale; with
	// Options.Slots also a membership of the group.
	WaitingFor []string `json:"waitingFor,omitempty"`
	Workers    int      `json:"workers"`
	// Slots are those of Options.Slots for whose keys calls are made, with ranges. SlotsExpected are
	// served once the caches have reached the versions of their last owners. Healthy: none for long.
	Slots         string `json:"slots,omitempty"`
	SlotsExpected string `json:"slotsExpected,omitempty"`
	// Queued is the number of queued keys by band. Healthy: falling back to 0.
	Queued Bands `json:"queued"`
	// BackingOff is the number of keys that wait after an error.
	BackingOff int `json:"backingOff,omitempty"`
	// Oldest is the key that has been queued for the longest time, for Waiting.
	Oldest  string          `json:"oldest,omitempty"`
	Waiting metav1.Duration `json:"waiting,omitzero"`
	// Flows are the ten flows with the most queued keys.
	Flows []Flow `json:"flows,omitempty"`
	// Running are up to ten calls that run, the longest first; RunningCalls is the number of all,
	// and RunningFor how long they have run together.
	Running      []Running       `json:"running,omitempty"`
	RunningCalls int             `json:"runningCalls"`
	RunningFor   metav1.Duration `json:"runningFor,omitzero"`
	// Parked are up to ten keys that are held back until the caches show what they wrote, the
	// longest first; ParkedKeys is the number of all.
	Parked     []Parked `json:"parked,omitempty"`
	ParkedKeys int      `json:"parkedKeys,omitempty"`
	// Calls counts calls, Errors those of them that failed, Panics those that panicked.
	Calls  uint64 `json:"calls"`
	Errors uint64 `json:"errors,omitempty"`
	Panics uint64 `json:"panics,omitempty"`
	// Succeeded counts the calls without an error and without RequeueAfter, Requeues those
	// without an error and with RequeueAfter. Retries counts the errors that are tried again,
	// Terminal the others. Timeouts counts the calls that took longer than Options.Timeout.
	Succeeded uint64 `json:"succeeded,omitempty"`
	Requeues  uint64 `json:"requeues,omitempty"`
	Retries   uint64 `json:"retries,omitempty"`
	Terminal  uint64 `json:"terminal,omitempty"`
	Timeouts  uint64 `json:"timeouts,omitempty"`
	// Added counts how often a key was queued, and Waits measures the time until a worker
	// took it. Durations measures the time that calls took.
	Added     uint64           `json:"added,omitempty"`
	Waits     health.Durations `json:"waits,omitzero"`
	Durations health.Durations `json:"durations,omitzero"`
	// Lag measures the time from the sending of an own write to the beginning of the call that the
	// write has led to. A call after an error is not measured.
	Lag health.Durations `json:"lag,omitzero"`
	// Informers are those that the controller follows, that of its objects first.
	Informers []FollowedInformer `json:"informers,omitempty"`
	// AwaitedWrites is the number of own writes that the caches do not show. Healthy: falling back
	// to 0.
	AwaitedWrites int `json:"awaitedWrites,omitempty"`
	// Loops counts the calls whose only reasons were own writes. Healthy: few of Calls.
	Loops uint64 `json:"loops,omitempty"`
	// Fights are objects of which this controller and others change the same fields in turn, and
	// Looping those of which calls change the same fields because of their own writes: at most 32
	// together, the first ones first. See docs/controllers.md for when one begins and ends. They need
	// Options.Guard. Healthy: none.
	Fights  []Rewrite `json:"fights,omitempty"`
	Looping []Rewrite `json:"looping,omitempty"`
	// LongestCall is the duration of the longest call.
	LongestCall metav1.Duration `json:"longestCall,omitzero"`
	// LastError is the last error of a call, with its key and time.
	LastError   string    `json:"lastError,omitempty"`
	LastErrorOf string    `json:"lastErrorOf,omitempty"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
	// Mappings are the last failures of mapping functions.
	Mappings []MappingFailure `json:"mappings,omitempty"`
	// Ended is why the last run ended, if it was an error and no other one has begun.
	Ended string `json:"ended,omitempty"`
}

// Bands is the number of queued keys in each band.
type Bands struct {
	Changes    int `json:"changes"`
	Requeues   int `json:"requeues"`
	Background int `json:"background"`
}

func (b Bands) sum() int { return b.Changes + b.Requeues + b.Background }

// Flow is a flow of keys that share the workers.
type Flow struct {
	Name    string `json:"name"`
	Queued  int    `json:"queued"`
	Running int    `json:"running"`
}

// Running is a call that runs.
type Running struct {
	Key string          `json:"key"`
	For metav1.Duration `json:"for"`
}

// Parked is a key that is held back until an informer's cache shows a write of it.
type Parked struct {
	Key   string    `json:"key"`
	Since time.Time `json:"since"`
	// Informer is whose cache is behind, Object and Version what was written; Version is empty
	// for a delete and for a write without an answer.
	Informer string `json:"informer"`
	Object   string `json:"object"`
	Version  string `json:"version,omitempty"`
	// Unknown says that the write had no answer: it may still arrive.
	Unknown bool `json:"unknown,omitempty"`
	// Problem is why the server could not be asked.
	Problem string `json:"problem,omitempty"`
}

// FollowedInformer is an informer that a controller follows.
type FollowedInformer struct {
	Name string `json:"name"`
	// Lag measures the time from the sending of an own write until the cache of the informer held
	// it. A write that shows when its call ends, and whose event has led to no call of its key,
	// counts up to that end.
	Lag health.Durations `json:"lag,omitzero"`
}

// MappingFailure is the panic of a function that tells which keys a change concerns: of Maps,
// References, Options.Ignore or Options.Flow.
type MappingFailure struct {
	Informer string    `json:"informer"`
	Object   string    `json:"object"`
	At       time.Time `json:"at"`
	Error    string    `json:"error"`
}

// listed bounds the lists of Health.
const listed = 10

// count changes the figures of the calls of all runs.
func (c *Controller[T]) count(add func(h *Health)) {
	c.figuresMu.Lock()
	defer c.figuresMu.Unlock()
	add(&c.figures)
}

// Health describes the controller.
func (c *Controller[T]) Health() Health {
	c.figuresMu.Lock()
	h := c.figures
	c.figuresMu.Unlock()
	c.mu.Lock()
	r := c.running
	h.Name, h.State, h.Workers, h.Ended = c.o.Name, StateStopped, c.workers, errorText(c.last)
	if c.takesPart && r == nil {
		h.State, h.WaitingFor, h.Ended = StateWaiting, []string{"a membership of the group"}, ""
	}
	c.mu.Unlock()
	if c.slots != nil {
		c.slots.describe(&h)
	}
	h.Waits, h.Durations, h.Lag = c.waits.Durations(), c.durations.Durations(), c.callLag.Durations()
	h.AwaitedWrites = c.barrier.awaitedWrites()
	for _, f := range c.all() {
		h.Informers = append(h.Informers, FollowedInformer{f.Name(), f.lag.Durations()})
		if failed := f.failures.last.Load(); failed != nil {
			h.Mappings = append(h.Mappings, MappingFailure{
				Informer: f.Name(), Object: failed.object, At: failed.at, Error: failed.Error(),
			})
		}
	}
	if r != nil {
		r.describe(&h)
	}
	h.Added += h.Waits.Count() + uint64(h.Queued.sum())
	c.count(func(figures *Health) {
		c.added = max(c.added, h.Added) // a key that a worker takes at this moment is in neither
		h.Added = c.added
	})
	return h
}

func (r *run[T]) describe(h *Health) {
	r.mu.Lock()
	h.State = StateWaiting
	if r.waitingFor != nil {
		h.WaitingFor = r.waitingFor()
	}
	stale := r.stale.Load()
	switch {
	case r.ending:
		h.State = StateStopping
	case stale != nil:
		h.State, h.WaitingFor = StateStale, []string{*stale}
	case r.started:
		h.State = StateRunning
	}
	r.mu.Unlock()
	s := r.queue.Stats()
	h.Queued = bandsOf(s)
	h.BackingOff, h.Oldest, h.Waiting.Duration = s.BackingOff, s.Oldest, s.Waiting
	h.RunningCalls, h.ParkedKeys = s.Running, s.Parked
	for _, f := range s.Flows {
		h.Flows = append(h.Flows, Flow(f))
	}
	for _, k := range r.queue.Keys(queue.Running, math.MaxInt) {
		h.RunningFor.Duration += k.For
		if len(h.Running) < listed {
			h.Running = append(h.Running, Running{k.Key, metav1.Duration{Duration: k.For}})
		}
	}
	h.Parked = r.barrier.describe(r.queue.Keys(queue.Parked, listed))
	h.Fights, h.Looping = r.rewritten()
}

func bandsOf(s queue.Stats) Bands {
	return Bands{s.Queued[queue.Changes], s.Queued[queue.Requeues], s.Queued[queue.Background]}
}

// errorText returns the text of an error, "" for none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
