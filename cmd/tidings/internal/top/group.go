package top

import (
	"cmp"
	"fmt"

	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/shard"
)

// maxSlots is the largest number of lines of slots.
const maxSlots = 32

func (s *sheet) group(f *debug.GroupFigures) {
	s.heading("Group %s", f.Lease)
	s.problems(f.Problems)
	s.add("%s as %s; the term stays open for %s; the planner is %s", f.State,
		cmp.Or(f.Identity, "no member"), format.Short(f.Remaining), cmp.Or(f.Planner, "not known"))
	covered := format.Percent(f.Covered) + " of the slots are covered"
	if f.UncoveredFor > 0 {
		covered += ", others not for up to " + format.Short(f.UncoveredFor)
	}
	s.add("%s", covered)
	for _, some := range []struct{ names, what string }{
		{f.Nobody, "nobody owns %s"}, {f.NotReady, "not ready: %s"},
	} {
		if some.names != "" {
			s.wrap(line{text: fmt.Sprintf(some.what, some.names), bad: true}, 2)
		}
	}
	if f.Late != "" {
		s.add("late, for up to %s: %s", format.Short(f.LateFor), f.Late)
	}
	s.add("this process owns %s and calls for %d", format.Counted(f.Owned, "slot", "slots"), f.Serving)
	s.add("its moves: %d in, %d of them after a crash, %d out", f.Moves.In, f.Moves.Crashes, f.Moves.Out)
	if f.LastError != "" {
		s.add("%s; the last%s: %s", format.Counted(f.Failures, "failed request", "failed requests"),
			s.ago(" ", f.LastErrorAt), f.LastError)
	}
	s.heading("Members")
	for _, m := range f.Members {
		text := fmt.Sprintf("%s: %s, %s, weight %d, renewed %s ago", m.Identity, m,
			format.Counted(m.Slots, "slot", "slots"), m.Weight, format.Short(m.Age))
		if m.Generation != "" {
			text += ", generation " + m.Generation
		}
		s.wrap(line{text: text, bad: !m.Live || m.Refused || len(m.Lacks) > 0}, 2)
	}
	s.slots(f)
}

// slots adds the slots and controllers that move, or are not covered, or late.
func (s *sheet) slots(f *debug.GroupFigures) {
	s.heading("Slots that move, or are not covered, or late")
	n := 0
	for _, e := range f.Slots {
		if e.Cover == shard.Covered && e.Next == "" {
			continue
		}
		if n++; n > maxSlots {
			continue
		}
		text := fmt.Sprintf("%s of %s for %s, weight %d", cmp.Or(e.Controller, fmt.Sprint(e.Slot)),
			cmp.Or(e.Owner, "no owner"), format.Short(e.Age), e.Weight)
		if e.Cover != shard.Covered {
			text += fmt.Sprintf(", %s for %s", e.Cover, format.Short(e.CoverFor))
		}
		if e.Reason != "" {
			text += ": " + e.Reason
		}
		if e.Next != "" {
			text += ", moves to " + e.Next + " for " + format.Short(e.MovingFor)
		}
		s.wrap(line{text: text, bad: e.Cover == shard.Nobody || e.Cover == shard.NotReady}, 2)
	}
	switch {
	case f.Slots == nil:
		s.add("There is no map.")
	case n == 0:
		s.add("There are none.")
	case n > maxSlots:
		s.add("and %s", format.Counted(n-maxSlots, "other", "others"))
	}
}
