package controller

import (
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// State is the state of a controller.
type State string

// The states of a controller.
const (
	// StateStopped: the controller does not run.
	StateStopped State = "Stopped"
	// StateWaiting: it waits for its informers, which Health.WaitingFor names.
	StateWaiting State = "Waiting"
	// StateRunning: it makes calls.
	StateRunning State = "Running"
	// StateStale: it makes no calls, because an informer has received nothing from the server for
	// longer than Options.MaxStaleness. If that is so in some of its namespaces, the others go on.
	StateStale State = "Stale"
	// StateStopping: it waits for running calls.
	StateStopping State = "Stopping"
	// StateDone: it is a task of a manager, and has returned without an error.
	StateDone State = "Done"
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
	// Slots are the slots for whose keys calls are made, with ranges, if Options.Slots is set. They
	// lack a slot for a moment while it moves. SlotsExpected are the slots that are served once the
	// caches have reached the versions of their last owners. Healthy: no slot is expected for long.
	Slots         string `json:"slots,omitempty"`
	SlotsExpected string `json:"slotsExpected,omitempty"`
	// Queued is the number of queued keys by band. Healthy: falling back to 0.
	Queued Bands `json:"queued"`
	// BackingOff is the number of keys that wait after an error and are tried again. TerminalKeys is
	// the number of keys that wait for a change after a Terminal error: up to 1,000. A key that fails
	// while there are 1,000 is left out until it fails again, also if there are fewer by then.
	BackingOff   int `json:"backingOff,omitempty"`
	TerminalKeys int `json:"terminalKeys,omitempty"`
	// Oldest is the key that has been queued for the longest time, and Waiting that time.
	// WaitingBecause says why no worker has taken it: the controller makes no calls, all workers run
	// one, the calls of its flow leave one worker to the others, or a worker is about to take it.
	Oldest         string          `json:"oldest,omitempty"`
	Waiting        metav1.Duration `json:"waiting,omitzero"`
	WaitingBecause string          `json:"waitingBecause,omitempty"`
	// Flows are the ten flows with the most queued keys.
	Flows []Flow `json:"flows,omitempty"`
	// Running are up to ten calls that run, the longest first. RunningCalls is the number of all
	// running calls, and RunningFor the sum of their durations so far.
	Running      []Running       `json:"running,omitempty"`
	RunningCalls int             `json:"runningCalls"`
	RunningFor   metav1.Duration `json:"runningFor,omitzero"`
	// HungFor is the time for which no call has begun or ended, because all workers are in one, if a
	// key waits; else 0. With Options.Slots it stays from ten minutes on until a call ends.
	HungFor metav1.Duration `json:"hungFor,omitzero"`
	// Parked are up to ten keys that are held back until the caches show their writes, the longest
	// first. ParkedKeys is the number of all such keys.
	Parked     []Parked `json:"parked,omitempty"`
	ParkedKeys int      `json:"parkedKeys,omitempty"`
	// Calls counts the calls, and Panics those that panicked. Errors counts those that failed, and the
	// attempts to begin one that failed, as the server could not be asked whether the object exists.
	Calls  uint64 `json:"calls"`
	Errors uint64 `json:"errors,omitempty"`
	Panics uint64 `json:"panics,omitempty"`
	// Succeeded counts the calls without an error and without RequeueAfter, Requeues the calls without
	// an error and with RequeueAfter. Retries counts the errors after which the key is tried again,
	// Terminal the other errors. Timeouts counts the calls that took longer than Options.Timeout.
	Succeeded uint64 `json:"succeeded,omitempty"`
	Requeues  uint64 `json:"requeues,omitempty"`
	Retries   uint64 `json:"retries,omitempty"`
	Terminal  uint64 `json:"terminal,omitempty"`
	Timeouts  uint64 `json:"timeouts,omitempty"`
	// Added counts the keys that were queued, each time, and Waits measures the time until a worker
	// took them. Durations measures the durations of calls.
	Added     uint64           `json:"added,omitempty"`
	Waits     health.Durations `json:"waits,omitzero"`
	Durations health.Durations `json:"durations,omitzero"`
	// Lag measures the time from the sending of an own write to the beginning of the call that the
	// write has led to. A call after an error is not measured.
	Lag health.Durations `json:"lag,omitzero"`
	// Informers are the informers that the controller follows, the one of its objects first.
	Informers []FollowedInformer `json:"informers,omitempty"`
	// AwaitedWrites is the number of own writes that the caches do not show. Healthy: falling back to
	// 0.
	AwaitedWrites int `json:"awaitedWrites,omitempty"`
	// Loops counts the calls whose only reasons were own writes. Healthy: few of Calls.
	Loops uint64 `json:"loops,omitempty"`
	// Fights are the objects with fields that this controller and others change in turn. Looping are
	// the objects with fields that calls change again and again because of their own writes. There are
	// at most 32 of both, the oldest first. See docs/controllers.md for their beginning and end. They
	// need Options.Guard. Healthy: both are empty.
	Fights  []Rewrite `json:"fights,omitempty"`
	Looping []Rewrite `json:"looping,omitempty"`
	// LongestCall is the duration of the longest call.
	LongestCall metav1.Duration `json:"longestCall,omitzero"`
	// LastError is the last error of a call, with its key and time.
	LastError   string    `json:"lastError,omitempty"`
	LastErrorOf string    `json:"lastErrorOf,omitempty"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
	// Mappings are the last panics of mapping functions, and of functions of Options.
	Mappings []MappingFailure `json:"mappings,omitempty"`
	// Ended is the error with which the last run ended, until another run begins.
	Ended string `json:"ended,omitempty"`
}

// Bands is the number of queued keys in each band.
type Bands struct {
	Changes    int `json:"changes"`
	Requeues   int `json:"requeues"`
	Background int `json:"background"`
}

// Sum is the number of queued keys in all bands.
func (b Bands) Sum() int { return b.Changes + b.Requeues + b.Background }

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
	// Informer is the informer whose cache is behind. Object and Version are the key and version of
	// the write; Version is empty for a delete and for a write without an answer.
	Informer string `json:"informer"`
	Object   string `json:"object"`
	Version  string `json:"version,omitempty"`
	// Unknown reports whether the write had no answer: it may still be applied.
	Unknown bool `json:"unknown,omitempty"`
	// Problem is the error of the last question to the server.
	Problem string `json:"problem,omitempty"`
}

// Because says what the key waits for, as in "pods.v1 does not show its write of a/b".
func (p Parked) Because() string {
	text := fmt.Sprintf("%s does not show its write of %s", p.Informer, p.Object)
	if p.Unknown {
		object := p.Object
		if namespace, name := written.SplitKey(p.Object); name == "" { // the server makes the name
			object = strings.TrimSuffix("a new object in "+namespace, " in ")
		}
		text = fmt.Sprintf("its write of %s had no answer, and may still arrive", object)
	}
	if p.Problem != "" {
		text += "; the server cannot be asked: " + p.Problem
	}
	return text
}

// FollowedInformer is an informer that a controller follows.
type FollowedInformer struct {
	Name string `json:"name"`
	// Lag measures the time from the sending of an own write until the cache of the informer held it.
	// A write that shows when its call ends, and whose event has led to no call of its key, counts up
	// to that end.
	Lag health.Durations `json:"lag,omitzero"`
}

// Rewrite is an object with fields that are written again and again.
type Rewrite struct {
	// Key is the key whose calls write the object, Informer the informer that holds it, and Object its
	// key there.
	Key      string `json:"key"`
	Informer string `json:"informer"`
	Object   string `json:"object"`
	// Fields are up to ten paths of the fields, as in spec.replicas; of a Secret only their first
	// parts. A creation or deletion is "(the object)".
	Fields []string `json:"fields"`
	// Manager is the field manager of the calls' writes. Other is the field manager of the others'
	// writes; a loop has none. Both are empty if the cache has no managed fields of the object.
	Manager string `json:"manager,omitzero"`
	Other   string `json:"other,omitzero"`
	// Times is the number of changes by others of a field that a call had written. In a loop, it is
	// the number of calls that own writes led to and that changed the field again.
	Times int       `json:"times"`
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

// MappingFailure is the panic of a function of Maps or References, or of Options: Ignore, Flow,
// RateLimiter, Metrics or Tracer.
type MappingFailure struct {
	Informer string    `json:"informer"`
	Object   string    `json:"object"`
	At       time.Time `json:"at"`
	Error    string    `json:"error"`
}

// mostListed bounds the lists of Health.
const mostListed = 10

// count changes the counters of the calls of all runs.
func (c *Controller[T]) count(add func(h *Health)) {
	c.figuresMu.Lock()
	defer c.figuresMu.Unlock()
	add(&c.figures)
}

// countDropped counts queued keys that no worker takes any more.
func (c *Controller[T]) countDropped(keys int) {
	c.figuresMu.Lock()
	defer c.figuresMu.Unlock()
	c.dropped += uint64(keys)
}

// Health describes the controller.
func (c *Controller[T]) Health() Health {
	c.figuresMu.Lock()
	h, dropped := c.figures, c.dropped
	c.figuresMu.Unlock()
	c.mu.Lock()
	r := c.running.Load()
	h.Name, h.State, h.Workers, h.Ended = c.o.Name, StateStopped, c.workers, errorText(c.last)
	c.mu.Unlock()
	m := c.member.Load()
	isStandby := m.isStandby()
	if m != nil {
		if runs, _, _ := m.state(); runs && r == nil {
			h.State, h.WaitingFor, h.Ended = StateWaiting, []string{"a membership of the group"}, ""
		}
		if served, opened, shut := m.Sets(); m.IsDivided() {
			h.Slots, h.SlotsExpected = opened.Minus(shut).String(), served.Minus(opened).String()
		}
	}
	h.Waits, h.Durations, h.Lag = c.waits.Durations(), c.durations.Durations(), c.callLag.Durations()
	h.AwaitedWrites = c.barrier.Open()
	for _, f := range c.informers.All() {
		h.Informers = append(h.Informers, FollowedInformer{f.Name(), f.Lag.Durations()})
		if failed := f.Failures.Last(); failed != nil {
			h.Mappings = append(h.Mappings, MappingFailure{
				Informer: f.Name(), Object: failed.Object, At: failed.At, Error: failed.Error(),
			})
		}
	}
	if r != nil {
		r.describe(&h)
	}
	if isStandby && h.State == StateRunning {
		h.State = StateStopped
	}
	h.Added = dropped + h.Waits.Count() + uint64(h.Queued.Sum())
	c.figuresMu.Lock()
	defer c.figuresMu.Unlock()
	c.mostAdded = max(c.mostAdded, h.Added) // a key that a worker takes at this moment is in neither
	h.Added = c.mostAdded
	return h
}

// describe adds the state of the run.
func (r *run[T]) describe(h *Health) {
	r.mu.Lock()
	h.State = StateWaiting
	if r.waitingFor != nil {
		h.WaitingFor = r.waitingFor()
	}
	started, ending := r.started, r.ending
	r.mu.Unlock()
	all, stale := r.gate.Names()
	switch {
	case ending:
		h.State = StateStopping
	case all:
		h.State, h.WaitingFor = StateStale, stale
	case started:
		h.State, h.WaitingFor = StateRunning, stale
	}
	s := r.queue.Stats()
	h.Queued = bandsOf(s)
	h.BackingOff, h.Oldest, h.Waiting.Duration = s.BackingOff, s.Oldest, s.Waiting
	h.RunningCalls, h.ParkedKeys = s.Running, s.Parked
	h.TerminalKeys = r.countTerminal()
	for _, f := range s.Flows {
		h.Flows = append(h.Flows, Flow(f))
	}
	running := r.queue.Keys(queue.Running, math.MaxInt)
	h.HungFor.Duration = r.workers.hungFor(s, running, r.serving.last().hung)
	for _, k := range running {
		h.RunningFor.Duration += k.For
		if len(h.Running) < mostListed {
			h.Running = append(h.Running, Running{k.Key, metav1.Duration{Duration: k.For}})
		}
	}
	if h.Oldest != "" {
		h.WaitingBecause = h.whyQueued(s.Limited)
	}
	for _, k := range r.queue.Keys(queue.Parked, mostListed) {
		if held, ok := r.barrier.Held(k.Key); ok {
			h.Parked = append(h.Parked, Parked(held))
		}
	}
	fights, loops := r.fights.List()
	for _, f := range fights {
		h.Fights = append(h.Fights, Rewrite(f))
	}
	for _, l := range loops {
		h.Looping = append(h.Looping, Rewrite(l))
	}
}

// whyQueued returns the reason why no worker has taken a queued key. limited says that the calls of
// its flow leave a worker to others.
func (h *Health) whyQueued(limited bool) string {
	switch {
	case h.State != StateRunning:
		return fmt.Sprintf("the controller is %s", h.State)
	case h.RunningCalls >= h.Workers && len(h.Running) > 0:
		longest, workers := h.Running[0], fmt.Sprintf("all %d workers run calls", h.Workers)
		if h.Workers == 1 {
			workers = "the only worker runs a call"
		}
		return fmt.Sprintf("%s, the one of %s for %v", workers, longest.Key,
			longest.For.Round(time.Second))
	case limited:
		return "the calls of its flow leave one worker to the keys of others"
	}
	return "a worker is about to take it"
}

// bandsOf returns the number of queued keys in each band.
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
