package handover

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var full = flag.Bool("handover.full", os.Getenv("TIDINGS_PROTOCOL_FULL") != "",
	"explore more than 10,000,000 states of the protocol (TIDINGS_PROTOCOL_FULL)")

// setting is a number of members and of slots, and a budget of faults.
type setting struct {
	members uint8
	slots   int
	budget  budget
}

func (s setting) explore(r rules, limit int) *exploration {
	x := explore(r, s.budget, limit)
	x.begin.slots = s.slots
	for p := s.members; p < processes; p++ {
		x.begin.leave(p)
	}
	return x
}

var (
	settings = []setting{
		{2, 2, budget{pauses: 1, slow: 1}},
		{2, 2, budget{pauses: 1, losses: 1}},
		{2, 2, budget{crashes: 1, losses: 1, moves: 1}},
		{2, 2, budget{quits: 1, crashes: 1, moves: 1}},
		{2, 2, budget{deletes: 1, losses: 1, rejoins: 1}},
		{3, 2, budget{slow: 1}},
		{3, 2, budget{crashes: 1}},
		{3, 1, budget{quits: 1}},
		{3, 2, budget{losses: 1}},
		// One entry and two members, with the calls of the handler.
		{2, 1, budget{calls: 2, moves: 2}},
		{2, 1, budget{calls: 1, moves: 1, losses: 1, unanswered: 1}},
		{2, 1, budget{calls: 1, moves: 1, crashes: 1, unanswered: 1}},
		{2, 1, budget{calls: 1, hungCalls: 1, moves: 1, quits: 1}},
		{2, 1, budget{calls: 1, moves: 1, hungLists: 1, failedLists: 1}},
		{2, 1, budget{hungLists: 1, quits: 1}},
		{2, 1, budget{calls: 1, moves: 1, refusals: 1}},
		{2, 1, budget{calls: 1, refusals: 1, quits: 1}},
	}
	large = []setting{
		{3, 2, budget{quits: 1}},
		{2, 1, budget{calls: 2, moves: 1, losses: 1, unanswered: 1}},
		{2, 1, budget{calls: 1, moves: 1, pauses: 1}},
		{2, 1, budget{calls: 1, moves: 1, hungLists: 1, quits: 1}},
		{2, 1, budget{calls: 1, moves: 1, refusals: 1, quits: 1}},
		{3, 2, budget{pauses: 1}},
		{3, 2, budget{crashes: 1, losses: 1}},
		{3, 2, budget{crashes: 1, moves: 1}},
		{3, 2, budget{quits: 1, crashes: 1, moves: 1}},
		{3, 2, budget{losses: 1, moves: 1}},
		{3, 2, budget{deletes: 1, crashes: 1}},
		{2, 2, budget{lags: 1, slow: 1}},
		{2, 2, budget{pauses: 1, rejoins: 1, moves: 1}},
		{3, 2, budget{pauses: 1, slow: 1}},
		{2, 1, budget{calls: 2, hungCalls: 1, moves: 2, losses: 1, unanswered: 1, hungLists: 1}},
		{2, 1, budget{calls: 1, moves: 1, refusals: 1, crashes: 1, rejoins: 1}},
		{3, 1, budget{calls: 1, moves: 1, crashes: 1, failedLists: 1}},
	}
)

// TestS1_OneOwner explores all states that the faults of a budget lead to. In each of them, at most
// one member calls for a slot, and an owner that opens has the versions of the last one. From each
// of them, a run without further faults gives each slot an owner that calls, and ends each
// hand-over: the only thing that stays is a slot with a call that does not end. The full
// exploration takes a quarter of an hour and 6 GB.
func TestS1_OneOwner(t *testing.T) {
	if *full {
		settings = append(settings, large...)
	}
	total := 0
	for i, s := range settings {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			x := s.explore(rules{}, 0)
			if problem := x.run(); problem != "" {
				t.Fatal(problem)
			}
			t.Logf("%d members, %d slots, %+v: %d states", s.members, s.slots, s.budget, len(x.prints))
			total += len(x.prints)
		})
	}
	t.Logf("%d states in all", total)
}
