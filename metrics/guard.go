package metrics

import "github.com/tidings-go/tidings/controller/guard"

// guardFamilies are the metrics of guards.
type guardFamilies struct {
	writes, refused, interrupted, conflicts, unknown, resolved *family
}

func newGuardFamilies(f *families) guardFamilies {
	const server = "server"
	return guardFamilies{
		writes: f.counter("tidings_guard_writes_total", "Writes that were sent, each attempt for "+
			"itself, by what has sent them: call, event of a recorder, or other, which is a client "+
			"without the context of a call. Healthy: hardly any other.", "by", server),
		refused: f.counter("tidings_guard_refused_total", "Writes that were not sent: fenced, as the "+
			"term was closed; late, as the call had ended; unfit, without a precondition or for "+
			"another server; shadow, by the shadow mode. Healthy: not growing, but fenced at the "+
			"end of a term.", "reason", server),
		interrupted: f.counter("tidings_guard_interrupted_total", "Writes whose term closed before "+
			"the answer had come. The server may have applied them.", server),
		conflicts: f.counter("tidings_guard_conflicts_total", "Writes of calls that the server "+
			"refused, as the object had another version or existed already.", server),
		unknown: f.counter("tidings_guard_unknown_total", "Writes of calls whose outcome or version "+
			"was not in the answer. Healthy: few of all writes.", server),
		resolved: f.counter("tidings_guard_resolved_total",
			"Writes that the server was asked about.", server),
	}
}

func (s *scrape) guard(h guard.Health) {
	server := s.guardNames.Distinct(h.Server)
	f, l := &s.guards, labels{}.label("server", server)
	writes := func(by string, n uint64) {
		s.send(f.writes, labels{}.label("by", by).label("server", server), float64(n))
	}
	writes("call", h.Sent-h.Unattributed-h.Events)
	writes("event", h.Events)
	writes("other", h.Unattributed)
	refused := func(reason string, n uint64) {
		s.send(f.refused, labels{}.label("reason", reason).label("server", server), float64(n))
	}
	refused("fenced", h.Fenced)
	refused("late", h.Late)
	refused("shadow", h.Shadowed)
	refused("unfit", h.Refused)
	s.send(f.interrupted, l, float64(h.Interrupted))
	s.send(f.conflicts, l, float64(h.Conflicts))
	s.send(f.unknown, l, float64(h.Unknown))
	s.send(f.resolved, l, float64(h.Resolved))
}
