package metrics

import "github.com/tidings-go/tidings/controller"

// runtimeFamilies are the metrics of controllers and elections under the names of those of
// controller-runtime v0.25.
type runtimeFamilies struct {
	total, errors, terminal, panics, timeouts, time, workers, active *family

	depth, adds, latency, work, unfinished, longest, retries *family

	leader *family
}

func newRuntimeFamilies(f *families) runtimeFamilies {
	const name = "controller"
	queue := []string{"controller", "name"}
	return runtimeFamilies{
		total: f.counter("controller_runtime_reconcile_total",
			"Calls by result: error, requeue_after or success.", name, "result"),
		errors: f.counter("controller_runtime_reconcile_errors_total", "Calls that failed.", name),
		terminal: f.counter("controller_runtime_terminal_reconcile_errors_total",
			"Calls that failed and are not tried again.", name),
		panics: f.counter("controller_runtime_reconcile_panics_total",
			"Calls that panicked.", name),
		timeouts: f.counter("controller_runtime_reconcile_timeouts_total",
			"Calls that took longer than Options.Timeout.", name),
		time: f.classic("controller_runtime_reconcile_time_seconds", "Time of calls.", name),
		workers: f.gauge("controller_runtime_max_concurrent_reconciles",
			"Calls that may run at once.", name),
		active: f.gauge("controller_runtime_active_workers", "Calls that run.", name),

		depth: f.gauge("workqueue_depth", "Keys that wait for a worker, by priority: -100 for "+
			"keys without a change, 0 for the others.", append(queue, "priority")...),
		adds: f.counter("workqueue_adds_total", "How often a key was queued.", queue...),
		latency: f.classic("workqueue_queue_duration_seconds",
			"How long keys were queued.", queue...),
		work: f.classic("workqueue_work_duration_seconds", "Time of calls.", queue...),
		unfinished: f.gauge("workqueue_unfinished_work_seconds",
			"How long the running calls have taken together.", queue...),
		longest: f.gauge("workqueue_longest_running_processor_seconds",
			"How long the longest of the running calls has taken.", queue...),
		retries: f.counter("workqueue_retries_total",
			"Calls whose key comes again after a delay.", queue...),

		leader: f.gauge("leader_election_master_status",
			"1 if this replica holds the Lease, otherwise 0.", "name"),
	}
}

// reconciler sends the metrics of a controller under the names of controller-runtime.
func (s *scrape) reconciler(h controller.Health, name string) {
	f, l := &s.runtime, labels{}.label("controller", name)
	results := func(result string, n uint64) {
		s.send(f.total, l.label("result", result), float64(n))
	}
	failed := h.Retries + h.Terminal
	results("error", failed)
	results("requeue_after", h.Requeues)
	results("success", h.Succeeded)
	s.send(f.errors, l, float64(failed))
	s.send(f.terminal, l, float64(h.Terminal))
	s.send(f.panics, l, float64(h.Panics))
	s.send(f.timeouts, l, float64(h.Timeouts))
	s.sendDurations(f.time, l, h.Durations)
	s.send(f.workers, l, float64(h.Workers))
	s.send(f.active, l, float64(h.RunningCalls))

	queue := l.label("name", name)
	s.send(f.depth, queue.label("priority", "0"), float64(h.Queued.Changes+h.Queued.Requeues))
	s.send(f.depth, queue.label("priority", "-100"), float64(h.Queued.Background))
	s.send(f.adds, queue, float64(h.Added))
	s.sendDurations(f.latency, queue, h.Waits)
	s.sendDurations(f.work, queue, h.Durations)
	s.send(f.unfinished, queue, h.RunningFor.Seconds())
	s.send(f.longest, queue, longestCall(h))
	s.send(f.retries, queue, float64(h.Retries+h.Requeues))
}
