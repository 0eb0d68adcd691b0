package metrics

import (
	"strings"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// controllerFamilies are the metrics of controllers.
type controllerFamilies struct {
	state, workers, queued, waiting, backingOff, terminal, parked, held, running, longest *family
	errors, panics, loops, calls, rewritten, awaited, lag, writeLag                       *family
}

func newControllerFamilies(f *families) controllerFamilies {
	const name = "controller"
	return controllerFamilies{
		state: f.gauge("tidings_controller_state", "1 for the state of the controller: Stopped, "+
			"Waiting, Running, Stale or Stopping. Healthy: Running, or Stopped in a standby.",
			name, "state"),
		workers: f.gauge("tidings_controller_workers", "Calls that may run at once.", name),
		queued: f.gauge("tidings_controller_queued_keys", "Keys that wait for a worker, by what "+
			"asked for them: changes, requeues or background. Healthy: falling back to 0.",
			"band", name),
		waiting: f.gauge("tidings_controller_oldest_queued_seconds",
			"How long the key has waited that was queued first, 0 without queued keys.", name),
		backingOff: f.gauge("tidings_controller_backing_off_keys",
			"Keys that wait after an error.", name),
		terminal: f.gauge("tidings_controller_terminal_keys", "Keys whose last call failed with a "+
			"Terminal error, and which wait for a change: up to 1,000.", name),
		parked: f.gauge("tidings_controller_parked_keys",
			"Keys that wait until the caches show what their calls wrote.", name),
		held: f.gauge("tidings_controller_longest_parked_seconds",
			"How long the caches have not shown what the calls of a key wrote, of the key that has "+
				"waited longest; 0 without one. Healthy: below 10.", name),
		running: f.gauge("tidings_controller_running_calls", "Calls that run.", name),
		longest: f.gauge("tidings_controller_longest_running_seconds",
			"How long the longest of the running calls has taken, 0 without one.", name),
		errors: f.counter("tidings_controller_errors_total", "Calls that failed, by whether they "+
			"are tried again: retry or terminal.", name, "kind"),
		panics: f.counter("tidings_controller_panics_total",
			"Calls that panicked. Healthy: 0.", name),
		loops: f.counter("tidings_controller_loops_total",
			"Calls that only own writes have led to. Healthy: few of all calls.", name),
		calls: f.classic("tidings_controller_call_duration_seconds", "Time of calls.", name),
		rewritten: f.gauge("tidings_controller_rewritten_objects", "Objects of which the same fields "+
			"are written again and again: fight, if this controller and others change them in turn; "+
			"loop, if its calls change them because of their own writes. Healthy: 0.", name, "kind"),
		awaited: f.gauge("tidings_controller_awaited_writes", "Own writes that the caches do not "+
			"show yet. Healthy: falling back to 0.", name),
		lag: f.classic("tidings_controller_lag_seconds", "Time from the sending of an own write to "+
			"the beginning of the call that the write has led to.", name),
		writeLag: f.classic("tidings_controller_write_lag_seconds", "Time from the sending of an own "+
			"write until the cache of the informer held it.", name, "informer"),
	}
}

func (s *scrape) controller(h controller.Health) {
	name := h.Name
	f, l := &s.controllers, labels{}.label("controller", name)
	s.send(f.state, l.label("state", string(h.State)), 1)
	s.send(f.workers, l, float64(h.Workers))
	queued := func(band string, n int) {
		s.send(f.queued, labels{}.label("band", band).label("controller", name), float64(n))
	}
	queued("background", h.Queued.Background)
	queued("changes", h.Queued.Changes)
	queued("requeues", h.Queued.Requeues)
	s.send(f.waiting, l, h.Waiting.Seconds())
	s.send(f.backingOff, l, float64(h.BackingOff))
	s.send(f.terminal, l, float64(h.TerminalKeys))
	s.send(f.parked, l, float64(h.ParkedKeys))
	s.send(f.held, l, longestParked(h))
	s.send(f.running, l, float64(h.RunningCalls))
	s.send(f.longest, l, longestCall(h))
	s.send(f.errors, l.label("kind", "retry"), float64(h.Retries))
	s.send(f.errors, l.label("kind", "terminal"), float64(h.Terminal))
	s.send(f.panics, l, float64(h.Panics))
	s.send(f.loops, l, float64(h.Loops))
	s.sendDurations(f.calls, l, h.Durations)
	s.send(f.rewritten, l.label("kind", "fight"), float64(len(h.Fights)))
	s.send(f.rewritten, l.label("kind", "loop"), float64(len(h.Looping)))
	s.send(f.awaited, l, float64(h.AwaitedWrites))
	s.sendDurations(f.lag, l, h.Lag)
	followed := inspect.Names{}
	for _, i := range h.Informers {
		informer := followed.Distinct(s.nameOf(i.Name))
		s.sendDurations(f.writeLag, l.label("informer", informer), i.Lag)
	}
	if s.o.ControllerRuntime {
		s.reconciler(h, name)
	}
}

// longestCall returns the time that the longest running call has taken, in seconds.
func longestCall(h controller.Health) float64 {
	if len(h.Running) == 0 {
		return 0
	}
	return h.Running[0].For.Seconds()
}

// longestParked returns the longest time for which a key has been held back, in seconds.
func longestParked(h controller.Health) float64 {
	if len(h.Parked) == 0 {
		return 0
	}
	return time.Since(h.Parked[0].Since).Seconds()
}

// electionFamilies are the metrics of elections.
type electionFamilies struct{ leading, remaining, transitions, failures *family }

func newElectionFamilies(f *families) electionFamilies {
	const lease = "lease"
	return electionFamilies{
		leading: f.gauge("tidings_election_leading",
			"1 if this replica holds the Lease, otherwise 0.", lease),
		remaining: f.gauge("tidings_election_remaining_seconds",
			"How long the term stays open without another renewal, 0 without a term. "+
				"Healthy: more than half of the duration of the Lease.", lease),
		transitions: f.counter("tidings_election_transitions_total",
			"Changes of the holder, as the Lease counts them.", lease),
		failures: f.counter("tidings_election_failures_total",
			"Requests for the Lease that failed. Healthy: not growing.", lease),
	}
}

// election sends the metrics of a candidate. The label is the name of the Lease without its
// namespace.
func (s *scrape) election(h election.Health) {
	lease := s.leaseNames.Distinct(nameOfLease(h.Lease))
	f, l := &s.elections, labels{}.label("lease", lease)
	leading := oneIf(h.State == election.Leading || h.State == election.Draining)
	s.send(f.leading, l, leading)
	s.send(f.remaining, l, h.Remaining.Seconds())
	s.send(f.transitions, l, float64(h.Transitions))
	s.send(f.failures, l, float64(h.Failures))
	if s.o.ControllerRuntime {
		s.send(s.runtime.leader, labels{}.label("name", lease), leading)
	}
}

// nameOfLease returns the name of a Lease without its namespace.
func nameOfLease(lease string) string { return lease[strings.LastIndex(lease, "/")+1:] }
