package top

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/format"
)

// The headings of the objects that are written repeatedly.
const fightsHeading, loopsHeading = "Fights", "Loops"

func (s *sheet) controller(f *debug.ControllerFigures) {
	h := f.Health
	s.heading("Controller %s", h.Name)
	s.problems(f.Problems)
	s.add("%s; %s queued: %d changes, %d requeues, %d in the background", h.State,
		format.Counted(f.Queued, "key", "keys"), h.Queued.Changes, h.Queued.Requeues, h.Queued.Background)
	s.add("%s, %s; the longest took %s", format.Counted(h.Calls, "call", "calls"),
		format.Counted(h.Errors, "error", "errors"), format.Short(h.LongestCall.Duration))
	if len(h.WaitingFor) > 0 {
		s.add("waits for %s", strings.Join(h.WaitingFor, ", "))
	}
	if h.Oldest != "" {
		s.link(keyLink(h.Oldest), "%s has been queued for the longest time, %s: %s", h.Oldest,
			format.Short(h.Waiting.Duration), h.WaitingBecause)
	}
	s.graphs(f.History)
	s.rewrites(fightsHeading, h.Fights)
	s.rewrites(loopsHeading, h.Looping)
	s.waits(f)
	if len(f.Failures) > 0 {
		s.heading("Failed calls by their errors")
	}
	for _, g := range f.Failures {
		s.wrap(line{text: fmt.Sprintf("%s of %s%s: %s", format.Counted(g.Calls, "call", "calls"),
			format.Counted(g.Keys, "key", "keys"), s.ago(", the last ", g.Last), g.Error), bad: true}, 2)
	}
	if len(f.LastFailed) > 0 {
		s.heading("Last calls that failed")
		s.calls(f.LastFailed)
	}
	s.heading("Last calls")
	s.calls(f.LastCalls)
	s.writes(f)
}

// waits adds the keys that wait, by state.
func (s *sheet) waits(f *debug.ControllerFigures) {
	state := controller.WaitState("")
	for _, w := range f.Waits {
		if w.State != state {
			state = w.State
			text, all, n := waitHeadings[state], f.Health.KeysIn(state), 0
			for _, other := range f.Waits {
				if other.State == state {
					n++
				}
			}
			if all > n {
				s.heading("%s: %s, the first %d", text, format.Int(all), n)
			} else {
				s.heading("%s: %d", text, n)
			}
		}
		s.wait(w.Key, keyLink(w.Key), w)
	}
}

// waitHeadings are the headings of keys that wait.
var waitHeadings = map[controller.WaitState]string{
	controller.WaitQueued: "Queued", controller.WaitBackingOff: "Waiting after an error",
	controller.WaitHeldBack: "Held back", controller.WaitRunning: "Running",
	controller.WaitRequeued: "Requeued", controller.WaitTerminal: "Waiting for a change after a Terminal error",
}

// wait adds the reason why a key waits, and until when.
func (s *sheet) wait(of, link string, w controller.Wait) {
	text := fmt.Sprintf("%s for %s: %s", of, s.since(w.Since), w.Because)
	if w.Band != "" {
		text += ", band " + w.Band
	}
	if w.Ahead > 0 {
		text += ", " + format.Counted(w.Ahead, "key of its flow is", "keys of its flow are") + " before it"
	}
	if w.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", w.Attempt)
	}
	if !w.Next.IsZero() {
		text += ", next in " + format.Short(max(0, w.Next.Sub(s.now)))
	}
	s.link(link, "%s", text)
	if w.LastError != "" {
		s.wrap(line{text: "error: " + w.LastError, link: link, bad: true}, 4)
	}
}

// writes adds the lag of the writes of a controller, and the figures of the guard of its manager.
func (s *sheet) writes(f *debug.ControllerFigures) {
	h := f.Health
	s.heading("Own writes")
	s.add("%s not in the caches yet", format.Counted(h.AwaitedWrites, "write is", "writes are"))
	if h.Lag.Count() > 0 {
		s.add("from a write to the call that it led to: %s", lag(h.Lag))
	}
	for _, i := range h.Informers {
		if i.Lag.Count() > 0 {
			s.link(informerLink(i.Name), "from a write until %s held it: %s", i.Name, lag(i.Lag))
		}
	}
	if h.Loops > 0 {
		s.add("%s only such writes as reasons", format.Counted(h.Loops, "call had", "calls had"))
	}
	g := f.Guard
	if g == nil {
		return
	}
	counts := []string{format.Int(g.Sent) + " sent"}
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{g.Conflicts, "in conflict"}, {g.Unknown, "without a known outcome"},
		{g.Interrupted, "interrupted by the end of the term"},
		{g.Fenced, "refused after the term"}, {g.Late, "refused after their call"},
		{g.Refused, "refused as unfit"}, {g.Shadowed, "refused by shadow mode"},
	} {
		if c.n > 0 {
			counts = append(counts, format.Int(c.n)+" "+c.what)
		}
	}
	s.add("writes of its manager: %s", strings.Join(counts, ", "))
}

// lag returns the mean of measured times and their 99th percentile, as text.
func lag(d health.Durations) string {
	return fmt.Sprintf("%s in the mean, 99 of 100 within %s", format.Short(d.Mean()),
		format.Short(d.Quantile(0.99)))
}

// rewrites adds objects whose fields are changed repeatedly.
func (s *sheet) rewrites(name string, all []controller.Rewrite) {
	if len(all) > 0 {
		s.heading("%s: %d", name, len(all))
	}
	for _, r := range all {
		by := []string{"the calls of " + r.Key + " (" + fieldManager(r.Manager) + ")"}
		if name == fightsHeading {
			by = append(by, "others ("+fieldManager(r.Other)+")")
		}
		s.link(keyLink(r.Object), "%s of %s in %s: written by %s; %s for %s, the last%s",
			strings.Join(r.Fields, ", "), r.Object, r.Informer, strings.Join(by, " and "),
			format.Counted(r.Times, "time", "times"), s.since(r.Since), s.ago(" ", r.Last))
	}
}

func fieldManager(name string) string { return cmp.Or(name, "field manager not known") }

func (s *sheet) calls(all []controller.Call) {
	if len(all) == 0 {
		s.add("There are none.")
	}
	for _, c := range all {
		s.call("", c)
	}
}

// call adds a call with its reasons; prefix is the text before it, such as the name of its
// controller.
func (s *sheet) call(prefix string, c controller.Call) {
	text := prefix + c.Key + s.ago(", ", c.Began) + ", took " + format.Short(c.Took.Duration)
	if c.Waited.Duration > 0 {
		text += ", queued for " + format.Short(c.Waited.Duration)
	}
	if c.Lag.Duration > 0 {
		text += ", began " + format.Short(c.Lag.Duration) + " after the write that led to it"
	}
	if c.RequeueAfter.Duration > 0 {
		text += ", asked for a call after " + format.Short(c.RequeueAfter.Duration)
	}
	s.link(keyLink(c.Key), "%s", text)
	for _, r := range c.Reasons {
		s.wrap(line{text: "because: " + r.String(), link: keyLink(c.Key)}, 4)
	}
	if c.MoreReasons > 0 {
		more := format.Counted(c.MoreReasons, "other reason", "other reasons")
		s.wrap(line{text: "and " + more}, 4)
	}
	if c.Error != "" {
		s.wrap(line{text: "error: " + c.Error, link: keyLink(c.Key), bad: true}, 4)
	}
}
