package metrics

import (
	"testing"
	"time"

	"github.com/tidings-go/tidings/shard"
)

// TestGroups: the metrics of a group are its health, until it was left. Two groups of one name have
// labels of their own.
func TestGroups(t *testing.T) {
	one := everything()[0].(*group)
	other := &group{shard.Health{Lease: "other/rollout", UncoveredFor: time.Minute}}
	c := collector(t, Options{}, one, other)
	const label = "group=rollout"
	expect(t, c, 0.75, "tidings_shard_covered_ratio", label)
	expect(t, c, 5, "tidings_shard_nobody_entries", label)
	expect(t, c, 6, "tidings_shard_not_ready_entries", label)
	expect(t, c, 7, "tidings_shard_late_entries", label)
	expect(t, c, 700, "tidings_shard_late_seconds", label)
	expect(t, c, 20, "tidings_shard_uncovered_seconds", label)
	expect(t, c, 86, "tidings_shard_owned_slots", label)
	expect(t, c, 85, "tidings_shard_serving_slots", label)
	expect(t, c, 2, "tidings_shard_moving_slots", label)
	expect(t, c, 3, "tidings_shard_longest_move_seconds", label)
	expect(t, c, 2, "tidings_shard_members", label)
	expect(t, c, 100, "tidings_shard_moves_total", label, "kind=in")
	expect(t, c, 14, "tidings_shard_moves_total", label, "kind=out")
	expect(t, c, 1, "tidings_shard_moves_total", label, "kind=crash")
	expect(t, c, 10, "tidings_shard_remaining_seconds", label)
	expect(t, c, 4, "tidings_shard_failures_total", label)
	expect(t, c, 60, "tidings_shard_uncovered_seconds", "group=rollout#2")
	one.health.State, other.health.State = shard.Stopped, shard.Stopped
	if families := gathered(t, c); len(families) > 0 || c.sources.Len() > 0 {
		t.Errorf("%d metrics and %d sources after the end", len(families), c.sources.Len())
	}
}
