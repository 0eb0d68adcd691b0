package debug

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/internal/see/gather"
)

const (
	// quietFor is the time without an event or a bookmark after which a watch is not normal:
	// servers send a bookmark about once a minute.
	quietFor = 3 * time.Minute
	// slowCall is a long time for a call of a handler, stuckCall one that does not end.
	slowCall, stuckCall = time.Second, time.Minute
	// handlerBehind is the age of the oldest waiting notification from which a handler is a
	// problem.
	handlerBehind = 5 * time.Second
	// failingFor is the time from which failures in a row are not a hiccup.
	failingFor = 5 * time.Second
	// listingFor is a long time for a first list.
	listingFor = 5 * time.Minute
)

func (h *Handler) informerProblems(i gather.Informer, now time.Time) []Problem {
	state := i.Health
	f := finder{pattern: Problem{Of: i.Name, Link: informerLink(i.Name), informer: i.Name}}
	switch {
	case state.State.Failing() && len(state.Namespaces) == 0:
		f.failing(state.Watch, state.Synced, "", now)
	case state.State == tidings.StateStopped:
		f.add(LevelError, topicStopped, state.Since, "has stopped")
	case !state.Synced:
		level := levelIf(now.Sub(state.Since) > listingFor, LevelWarning, LevelWaiting)
		f.add(level, topicListing, state.Since, "is not synced: %s, %d objects so far",
			state.State, state.Listed).Cause = topicListing
	case now.Sub(state.LastEvent) > quietFor:
		f.add(LevelError, topicSilent, state.LastEvent, "has received nothing, not even a bookmark")
	}
	for _, namespace := range slices.Sorted(maps.Keys(state.Namespaces)) {
		if w := state.Namespaces[namespace]; w.State.Failing() {
			f.failing(w, state.Synced, " in namespace "+namespace, now)
		}
	}
	for _, handler := range state.Handlers {
		f.handler(i.Name, handler, h.sampler.behind(i.Name, handler), now)
	}
	if state.Undecodable > 0 {
		what := format.Counted(state.Undecodable, "object cannot be decoded", "objects cannot be decoded")
		f.add(LevelError, topicObjects, time.Time{}, "%s, as %v", what, state.LastDropped)
	}
	if state.IndexErrors+state.TransformErrors+state.Dropped > 0 {
		f.add(LevelWarning, topicObjects, time.Time{},
			"%d objects dropped, %d failed transforms, %d failed index functions", state.Dropped, state.TransformErrors, state.IndexErrors)
	}
	return f.found
}

// cacheProblems returns the problems of an informer itself, without those of its handlers: pages that
// show what its cache holds, or follow it, have them too.
func (h *Handler) cacheProblems(i gather.Informer, now time.Time) []Problem {
	return slices.DeleteFunc(h.informerProblems(i, now), func(p Problem) bool { return p.Of != i.Name })
}

// failing adds the problem of a list and watch that fails.
func (f *finder) failing(w health.Watch, synced bool, where string, now time.Time) {
	cause := failureOf(w.LastError)
	level := levelIf(now.Sub(w.FailingSince) > failingFor, LevelError, LevelWarning)
	switch w.State {
	case tidings.StateForbidden:
		cause, level = cmp.Or(cause, noPermission), LevelError
	case tidings.StateNoSuchResource:
		cause, level = notServed, levelIf(synced, LevelWaiting, LevelError)
	}
	p := f.add(level, cmp.Or(string(cause), topicFailing), w.FailingSince,
		"is %s%s: %v", w.State, where, w.LastError)
	p.Cause = string(cause)
	if role, ok := missingRole(w.LastError); ok {
		p.Commands = []Command{role}
	}
}

// handler adds the problem of a handler.
func (f *finder) handler(informer string, h health.Handler, behind time.Duration, now time.Time) {
	runs := time.Duration(0)
	if h.Running != "" {
		runs = now.Sub(h.RunningSince)
	}
	level := levelIf(runs > stuckCall || h.State == health.HandlerStuck, LevelError, LevelWarning)
	of := finder{pattern: f.pattern}
	of.pattern.Of = "handler " + h.Name + " of " + informer
	switch {
	case behind > handlerBehind:
		of.add(level, topicHandler, now.Add(-behind), "is behind: %d notifications wait", h.Pending)
	case h.State == health.HandlerBehind || h.State == health.HandlerStuck:
		of.add(level, topicHandler, h.RunningSince, "is %s: %d notifications wait", h.State, h.Pending)
	case runs > slowCall:
		of.add(level, topicHandler, h.RunningSince, "has not returned from %s", h.Running)
	}
	f.found = append(f.found, of.found...)
}
