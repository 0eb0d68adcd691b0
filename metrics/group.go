package metrics

import "github.com/tidings-go/tidings/shard"

// groupFamilies are the metrics of groups of shards.
type groupFamilies struct {
	covered, nobody, notReady, late, uncoveredFor, lateFor *family
	owned, serving, moving, movingFor, members, moves      *family
	remaining, failures                                    *family
}

func newGroupFamilies(f *families) groupFamilies {
	const name = "group"
	return groupFamilies{
		covered: f.gauge("tidings_shard_covered_ratio", "Share of slots and controllers whose owner lives and calls "+
			"for them, late ones included, as this replica sees it. Healthy: 1.", name),
		nobody: f.gauge("tidings_shard_nobody_entries", "Slots and controllers that no live member owns. "+
			"Healthy: 0, or falling back to it within the duration of a Lease and 30 seconds.", name),
		notReady: f.gauge("tidings_shard_not_ready_entries", "Slots and controllers whose owner lives and does not call "+
			"for them yet, or not at present. Healthy: 0, or falling back to it within the duration of a Lease and "+
			"30 seconds.", name),
		late: f.gauge("tidings_shard_late_entries", "Slots and controllers that are covered and have a key that waits "+
			"for more than a minute. Healthy: falling back to 0 within ten minutes.", name),
		uncoveredFor: f.gauge("tidings_shard_uncovered_seconds", "For how long the slot or controller has had nobody, or "+
			"has not been ready, for which that holds the longest, 0 without one. Healthy: up to the duration of a Lease "+
			"and 30 seconds, which is 45 by default.", name),
		lateFor: f.gauge("tidings_shard_late_seconds", "For how long the slot or controller has been late for which that "+
			"holds the longest, 0 without one. Healthy: less than 600.", name),
		owned: f.gauge("tidings_shard_owned_slots", "Slots that this replica owns. Healthy: about the slots divided by "+
			"the members, if slots have about as many objects as each other.", name),
		serving: f.gauge("tidings_shard_serving_slots", "Slots that this replica calls for. "+
			"Healthy: the owned ones, but for those that come or go.", name),
		moving: f.gauge("tidings_shard_moving_slots",
			"Slots and controllers of the group that have a next owner. Healthy: falling back to 0.", name),
		movingFor: f.gauge("tidings_shard_longest_move_seconds", "For how long the slot or controller has its next "+
			"owner that moves the longest, 0 without one. Healthy: as long as the list of its largest type and its "+
			"calls take.", name),
		members: f.gauge("tidings_shard_members", "Members that renew their Lease, as this replica "+
			"sees it. Healthy: the replicas.", name),
		moves: f.counter("tidings_shard_moves_total", "Slots and controllers that changed their owner: in, received by "+
			"this replica; out, given away by it; crash, those of in whose owner had ended without a hand-over. "+
			"Healthy: none while no member joins or leaves, and crash not growing.", name, "kind"),
		remaining: f.gauge("tidings_shard_remaining_seconds",
			"How long the term stays open without another renewal, 0 without a membership. "+
				"Healthy: more than half of the duration of the Lease.", name),
		failures: f.counter("tidings_shard_failures_total",
			"Requests for the Leases of the group that failed. Healthy: not growing.", name),
	}
}

// group sends the metrics of a group. The label is the name of the
// group without its namespace.
func (s *scrape) group(h shard.Health) {
	f, l := &s.groups, labels{}.label("group", s.groupNames.Distinct(nameOfLease(h.Lease)))
	s.send(f.covered, l, h.Covered)
	s.send(f.nobody, l, float64(h.Entries[shard.Nobody]))
	s.send(f.notReady, l, float64(h.Entries[shard.NotReady]))
	s.send(f.late, l, float64(h.Entries[shard.Late]))
	s.send(f.lateFor, l, h.LateFor.Seconds())
	s.send(f.uncoveredFor, l, h.UncoveredFor.Seconds())
	s.send(f.owned, l, float64(h.Owned))
	s.send(f.serving, l, float64(h.Serving))
	s.send(f.moving, l, float64(h.Moving))
	s.send(f.movingFor, l, h.MovingFor.Seconds())
	members := 0
	for _, m := range h.Members {
		if m.Live {
			members++
		}
	}
	s.send(f.members, l, float64(members))
	s.send(f.moves, l.label("kind", "in"), float64(h.Moves.In))
	s.send(f.moves, l.label("kind", "out"), float64(h.Moves.Out))
	s.send(f.moves, l.label("kind", "crash"), float64(h.Moves.Crashes))
	s.send(f.remaining, l, h.Remaining.Seconds())
	s.send(f.failures, l, float64(h.Failures))
}
