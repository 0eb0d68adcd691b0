package protocol

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var full = flag.Bool("protocol.full", os.Getenv("TIDINGS_PROTOCOL_FULL") != "",
	"explore more than 10,000,000 states of the protocol (TIDINGS_PROTOCOL_FULL)")

// setting is a number of members and a budget of faults.
type setting struct {
	members uint8
	budget  budget
}

var (
	settings = []setting{
		{2, budget{pauses: 1, slow: 1}},
		{2, budget{pauses: 1, losses: 1}},
		{2, budget{crashes: 1, losses: 1, moves: 1, lates: 1}},
		{2, budget{quits: 1, crashes: 1, moves: 1}},
		{2, budget{deletes: 1, losses: 1, rejoins: 1}},
		{3, budget{slow: 1}},
		{3, budget{crashes: 1}},
		{3, budget{quits: 1}},
		{3, budget{losses: 1}},
	}
	large = []setting{
		{3, budget{pauses: 1}},
		{3, budget{crashes: 1, losses: 1}},
		{3, budget{crashes: 1, moves: 1, lates: 1}},
		{3, budget{quits: 1, crashes: 1, moves: 1}},
		{3, budget{losses: 1, moves: 1}},
		{3, budget{deletes: 1, crashes: 1}},
		{2, budget{lags: 1, slow: 1}},
		{2, budget{pauses: 1, rejoins: 1, moves: 1}},
		{3, budget{pauses: 1, slow: 1}},
	}
)

// TestS1_OneOwner explores all states that the faults of a budget lead to. In each of them, at most
// one member calls for a slot. From each of them, a run without faults gives each slot an owner that
// calls. The full exploration takes a quarter of an hour and 6 GB.
func TestS1_OneOwner(t *testing.T) {
	if *full {
		settings = append(settings, large...)
	}
	total := 0
	for i, s := range settings {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			x := explore(rules{}, s.budget, 0)
			for p := s.members; p < processes; p++ {
				x.begin.leave(p)
			}
			if problem := x.run(); problem != "" {
				t.Fatal(problem)
			}
			t.Logf("%d members, %+v: %d states", s.members, s.budget, len(x.prints))
			total += len(x.prints)
		})
	}
	t.Logf("%d states in all", total)
}
