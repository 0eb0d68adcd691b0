package top

import (
	"cmp"
	"fmt"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/debug"
)

// maxSlots is the largest number of lines of slots.
const maxSlots = 32

func (s *sheet) group(f *debug.GroupFigures) {
	s.heading("Group %s", f.Lease)
	s.problems(f.Problems)
	s.add("%s as %s; the term stays open for %s; the planner is %s", f.State,
		cmp.Or(f.Identity, "no member"), view.Short(f.Remaining), cmp.Or(f.Planner, "not known"))
	covered := percent(f.Covered).text + " of the slots are covered"
	if f.Uncovered != "" {
		covered += fmt.Sprintf("; uncovered, for up to %s: %s", view.Short(f.UncoveredFor), f.Uncovered)
	}
	s.add("%s", covered)
	s.add("this process owns %s and calls for %d", view.Counted(f.Owned, "slot", "slots"), f.Serving)
	s.add("its moves: %d in, %d out, %d taken back", f.Moves.In, f.Moves.Out, f.Moves.TakenBack)
	if f.LastError != "" {
		s.add("%s; the last%s: %s", view.Counted(f.Failures, "failed request", "failed requests"),
			s.ago(" ", f.LastErrorAt), f.LastError)
	}
	s.heading("Members")
	for _, m := range f.Members {
		text := fmt.Sprintf("%s: %s, load %g, renewed %s ago", m.Identity,
			view.Counted(m.Slots, "slot", "slots"), m.Load, view.Short(m.Age))
		if m.Generation != "" {
			text += ", generation " + m.Generation
		}
		switch {
		case m.Leaving:
			text += ", leaves"
		case m.Joining:
			text += ", joins"
		}
		s.wrap(line{text: text, bad: !m.Live}, 2)
	}
	s.slots(f)
}

// slots adds the slots that move or are uncovered.
func (s *sheet) slots(f *debug.GroupFigures) {
	s.heading("Slots that move or are uncovered")
	n := 0
	for _, e := range f.Slots {
		if e.Covered && e.Next == "" {
			continue
		}
		if n++; n > maxSlots {
			continue
		}
		text := fmt.Sprintf("%d of %s for %s, load %g", e.Slot, cmp.Or(e.Owner, "no owner"),
			view.Short(e.Age), e.Load)
		if !e.Covered {
			text += ", uncovered for " + view.Short(e.UncoveredFor)
		}
		if e.Next != "" {
			text += ", moves to " + e.Next + " for " + view.Short(e.MovingFor)
		}
		s.wrap(line{text: text, bad: !e.Covered}, 2)
	}
	switch {
	case f.Slots == nil:
		s.add("There is no map.")
	case n == 0:
		s.add("There are none.")
	case n > maxSlots:
		s.add("and %s", view.Counted(n-maxSlots, "other", "others"))
	}
}
