package debug

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/gather"
)

const (
	// quietFor is the time without an event or a bookmark after which a watch is not normal:
	// servers send a bookmark about once a minute.
	quietFor = 3 * time.Minute
	// slowCall is a long time for a call of a handler, slowReconcile for one of a controller.
	slowCall, slowReconcile = time.Second, time.Minute
	// handlerBehind is the age of the oldest waiting notification from which a handler is a
	// problem.
	handlerBehind = 5 * time.Second
	// parkedFor is a long time for a cache to show a write.
	parkedFor = 5 * time.Second
	// queuedFor is a long time for a key to wait for a worker.
	queuedFor = time.Minute
)

// Problem is a present problem.
type Problem struct {
	// Of is the informer, handler, controller or Lease, and Link its page.
	Of   string `json:"of"`
	Link string `json:"link"`
	// What is a sentence that describes it.
	What string `json:"what"`
	// Since is the time at which it began, zero if that is not known.
	Since time.Time `json:"since,omitzero"`
}

func (h *Handler) informerProblems(i gather.Informer, now time.Time) (found []Problem) {
	state, link := i.Health, informerLink(i.Name)
	add := func(of string, since time.Time, format string, args ...any) {
		found = append(found, Problem{of, link, fmt.Sprintf(format, args...), since})
	}
	switch {
	case state.State.Failing() && len(state.Namespaces) == 0:
		add(i.Name, state.FailingSince, "is %s: %v", state.State, state.LastError)
	case state.State == tidings.StateStopped:
		add(i.Name, state.Since, "has stopped")
	case !state.Synced:
		add(i.Name, state.Since, "is not synced: %s, %d objects so far", state.State, state.Listed)
	case now.Sub(state.LastEvent) > quietFor:
		add(i.Name, state.LastEvent, "has received nothing, not even a bookmark")
	}
	for _, namespace := range slices.Sorted(maps.Keys(state.Namespaces)) {
		if w := state.Namespaces[namespace]; w.State.Failing() {
			add(i.Name, w.FailingSince, "is %s in namespace %s: %v", w.State, namespace, w.LastError)
		}
	}
	for _, handler := range state.Handlers {
		of, behind := "handler "+handler.Name+" of "+i.Name, h.sampler.behind(i.Name, handler)
		switch {
		case behind > handlerBehind:
			add(of, now.Add(-behind), "is behind: %d notifications wait", handler.Pending)
		case handler.State == health.HandlerBehind || handler.State == health.HandlerStuck:
			add(of, handler.RunningSince, "is %s: %d notifications wait", handler.State, handler.Pending)
		case handler.Running != "" && now.Sub(handler.RunningSince) > slowCall:
			add(of, handler.RunningSince, "has not returned from %s", handler.Running)
		}
	}
	if state.Undecodable > 0 {
		add(i.Name, time.Time{}, "%d objects cannot be decoded, as %v", state.Undecodable, state.LastDropped)
	}
	if state.IndexErrors+state.TransformErrors+state.Dropped > 0 {
		add(i.Name, time.Time{}, "%d objects dropped, %d failed transforms, %d failed index functions",
			state.Dropped, state.TransformErrors, state.IndexErrors)
	}
	return found
}

func controllerProblems(c controller.Health, now time.Time) (found []Problem) {
	add := func(since time.Time, format string, args ...any) {
		found = append(found, Problem{"controller " + c.Name, controllerLink(c.Name),
			fmt.Sprintf(format, args...), since})
	}
	switch {
	case c.State == controller.StateWaiting || c.State == controller.StateStale:
		add(time.Time{}, "is %s: it waits for %v", c.State, c.WaitingFor)
	case c.Ended != "":
		add(time.Time{}, "has ended: %s", c.Ended)
	}
	if c.State == controller.StateRunning && len(c.WaitingFor) > 0 {
		add(time.Time{}, "makes no calls for some keys: it waits for %v", c.WaitingFor)
	}
	if c.Waiting.Duration > queuedFor {
		add(now.Add(-c.Waiting.Duration), "%s has been queued for the longest time, of %s: %s", c.Oldest,
			counted(c.Queued.Sum(), "key", "keys"), c.WaitingBecause)
	}
	if c.BackingOff > 0 {
		add(c.LastErrorAt, "%s after an error; the last one, of %s: %s",
			counted(c.BackingOff, "key waits", "keys wait"), c.LastErrorOf, c.LastError)
	}
	for _, p := range c.Parked {
		if now.Sub(p.Since) > parkedFor {
			add(p.Since, "%s is held back: %s", p.Key, heldBy(p))
		}
	}
	for _, r := range c.Running {
		if r.For.Duration > slowReconcile {
			add(now.Add(-r.For.Duration), "has not returned from %s", r.Key)
		}
	}
	for _, f := range c.Fights {
		add(f.Since, "%s", fightText(f))
	}
	for _, l := range c.Looping {
		add(l.Since, "%s", loopText(l))
	}
	for _, m := range c.Mappings {
		add(m.At, "a function has failed for %s of %s: %s", m.Object, m.Informer, m.Error)
	}
	return found
}

// heldBy describes the write that a key waits for.
func heldBy(p controller.Parked) string {
	text := fmt.Sprintf("%s does not show its write of %s", p.Informer, p.Object)
	if p.Unknown {
		text = fmt.Sprintf("its write of %s had no answer, and may still arrive", p.Object)
	}
	if p.Problem != "" {
		text += "; the server cannot be asked: " + p.Problem
	}
	return text
}

func electionProblems(e election.Health) (found []Problem) {
	add := func(format string, args ...any) {
		found = append(found, Problem{"lease " + e.Lease, "./", fmt.Sprintf(format, args...), e.LastErrorAt})
	}
	if e.Polling != nil {
		add("is read now and then, as it cannot be watched: %v", e.Polling)
	}
	if e.State == election.Standby && e.Holder == "" {
		what := "has no holder"
		if e.LastError != nil {
			what += ": " + e.LastError.Error()
		}
		add("%s", what)
	}
	return found
}
