package debug

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/internal/see/gather"
)

const (
	// slowReconcile is a long time for a call of a controller, stuckReconcile one that does not end.
	slowReconcile, stuckReconcile = time.Minute, 10 * time.Minute
	// parkedFor is a long time for a cache to show a write.
	parkedFor = 5 * time.Second
	// queuedFor is the time from which a key that waits for a worker is a problem, and longQueued
	// the time from which its turn does not come by itself.
	queuedFor, longQueued = 10 * time.Second, time.Minute
	// fewAttempts is the number of failed attempts that are no warning yet.
	fewAttempts = 5
)

func controllerProblems(of gather.Controller, now time.Time) []Problem {
	c := of.Health
	f := finder{pattern: Problem{
		Of: "controller " + c.Name, Link: controllerLink(c.Name), controller: c.Name,
	}}
	switch {
	case c.State == controller.StateWaiting || c.State == controller.StateStale:
		level := levelIf(c.State == controller.StateStale, LevelError, LevelWaiting)
		p := f.add(level, topicWaiting, time.Time{}, "is %s: it waits for %v", c.State, c.WaitingFor)
		p.waitsFor, p.Keys = c.WaitingFor, c.Queued.Sum()
	case c.Ended != "":
		f.add(LevelError, topicEnded, time.Time{}, "has ended: %s", c.Ended).
			Cause = string(failureOfText(c.Ended))
	}
	if c.State == controller.StateRunning {
		if len(c.WaitingFor) > 0 {
			f.add(LevelWarning, topicWaiting, time.Time{},
				"makes no calls for some keys: it waits for %v", c.WaitingFor).waitsFor = c.WaitingFor
		}
		f.queue(c, now)
	}
	if c.BackingOff > 0 {
		level := levelIf(slices.ContainsFunc(of.Waits(""), isFailing), LevelWarning, LevelWaiting)
		p := f.add(level, topicBackingOff, c.LastErrorAt,
			"%s after an error; the last one, of %s: %s",
			format.Counted(c.BackingOff, "key waits", "keys wait"), c.LastErrorOf, c.LastError)
		p.Keys, p.Cause = c.BackingOff, string(failureOfText(c.LastError))
	}
	f.parked(c, now)
	for _, r := range c.Running {
		if long := r.For.Duration; long > slowReconcile {
			f.add(levelIf(long > stuckReconcile, LevelError, LevelWarning), topicLongCall, now.Add(-long),
				"has not returned from %s", r.Key).Keys = 1
		}
	}
	for _, r := range c.Fights {
		f.add(LevelWarning, topicRewrites, r.Since, "%s", fightText(r))
	}
	for _, l := range c.Looping {
		f.add(LevelWarning, topicRewrites, l.Since, "%s", loopText(l))
	}
	for _, m := range c.Mappings {
		f.add(LevelWarning, topicMapping, m.At, "a function has failed for %s of %s: %s",
			m.Object, m.Informer, m.Error)
	}
	return f.found
}

// isFailing reports whether a key fails so often, or is tried again so late, that the next attempt
// is not likely to succeed, as it is after a conflict.
func isFailing(w controller.Wait) bool {
	return w.State == controller.WaitBackingOff &&
		(w.Attempt > fewAttempts || w.Next.Sub(w.Since) > queuedFor)
}

// queue adds the problem of a queue that does not move, or of keys that wait in it.
func (f *finder) queue(c controller.Health, now time.Time) {
	queued := c.Queued.Sum()
	switch hung, waiting := c.HungFor.Duration, c.Waiting.Duration; {
	case hung > queuedFor && queued > 0:
		f.add(levelIf(hung > longQueued, LevelError, LevelWarning), topicQueue, now.Add(-hung),
			"has a queue that does not move: %s, and %s", format.Counted(queued, "key waits", "keys wait"),
			c.WaitingBecause).Keys = queued
	case waiting > queuedFor:
		f.add(levelIf(waiting > longQueued, LevelWarning, LevelWaiting), topicQueued, now.Add(-waiting),
			"%s has been queued for the longest time, of %s: %s", c.Oldest,
			format.Counted(queued, "key", "keys"), c.WaitingBecause).Keys = queued
	}
}

// parked adds the problems of keys that are held back, with one cause for each informer.
func (f *finder) parked(c controller.Health, now time.Time) {
	var last *Problem
	for _, p := range c.Parked {
		if now.Sub(p.Since) <= parkedFor {
			continue
		}
		level := levelIf(p.Problem != "" || now.Sub(p.Since) > longQueued, LevelWarning, LevelWaiting)
		last = f.add(level, topicHeldBack, p.Since, "%s is held back: %s", p.Key, p.Because())
		last.Keys, last.waitsFor = 1, []string{p.Informer}
		last.Cause = string(failureOfText(p.Problem))
		if last.Cause == "" {
			last.Cause = fmt.Sprintf("%s does not show writes yet", p.Informer)
		}
	}
	if more := c.ParkedKeys - len(c.Parked); last != nil && more > 0 {
		last.What += "; and " + format.Counted(more, "more key is", "more keys are") + " held back"
		last.Keys += more
	}
}
