package cli

import (
	"testing"
	"time"

	"github.com/tidings-go/tidings/shard"
)

func TestShardsText(t *testing.T) {
	r := shard.Report{
		Lease: "ops/rollout", Planner: "rollout.a", Covered: 0.75, Moving: 2,
		Members: []shard.MemberHealth{
			{
				Identity: "rollout.a", Generation: "v1", Live: true, Does: "takes", Slots: 128, Weight: 12345,
				Age: 2100 * time.Millisecond,
			},
			{
				Identity: "rollout.b", Generation: "v2\x1b[2J", Live: true, Does: "leaving", Refused: true, Lacks: []string{"images"},
				Slots: 64, Age: time.Second,
			},
			{Identity: "rollout.c", Slots: 64, Age: 3 * time.Minute},
		},
		Problems: []string{"The Lease of rollout.c ran out 2m45s ago, and no member has ended it."},
		Remarks:  []string{"Members of 2 generations live."},
	}
	for i := range 4 {
		owner := []string{"rollout.a", "rollout.b", "rollout.c", ""}[i]
		cover := map[bool]shard.Cover{true: shard.Nobody, false: shard.Covered}[owner == ""]
		for n := range 64 {
			r.Slots = append(r.Slots, shard.Entry{Slot: i*64 + n, Owner: owner, Cover: cover})
		}
	}
	r.Slots = append(r.Slots, shard.Entry{
		Slot: 256, Controller: "images", Owner: "rollout.b", Next: "rollout.a",
	})
	r.Slots[70].Owner = "rollout.a"
	r.Slots[1].Next, r.Slots[1].Ready, r.Slots[255].Next = "rollout.b", true, "rollout.a"
	const want = `GROUP ops/rollout: 75 % covered, 3 members, 2 moving

MEMBER     GENERATION  STATE                                                 RENEWED   SLOTS  WEIGHT
rollout.a  v1          takes, plans                                          2.1s ago  128    12345
rollout.b  v2·[2J      leaving, its writes are refused, cannot serve images  1s ago    64     0
rollout.c              does not renew                                        3m0s ago  64     0

OWNER      SLOTS
(nobody)   192-255
rollout.a  0-63,70
rollout.b  64-69,71-127
rollout.c  128-191

CONTROLLER  OWNER
images      rollout.b

MOVES     FROM       TO         READY
slot 1    rollout.a  rollout.b  yes
slot 255  (nobody)   rollout.a  no
images    rollout.b  rollout.a  no

PROBLEMS
The Lease of rollout.c ran out 2m45s ago, and no member has ended it.

REMARKS
Members of 2 generations live.
`
	if got := shardsText(r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const empty = `GROUP ops/rollout: 0 % covered, 0 members, 0 moving

PROBLEMS
There is no map.
`
	if got := shardsText(shard.Report{Lease: "ops/rollout", Problems: []string{"There is no map."}}); got != empty {
		t.Errorf("got\n%s\nwant\n%s", got, empty)
	}
}
