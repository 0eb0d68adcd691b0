package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidings-go/tidings/cmd/tidings/internal/until"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// maxWaiting is how many objects an error names that a wait was for.
const maxWaiting = 5

// newGoal returns the goal of a watcher, nil if it has none.
func (w *watcher) newGoal() *until.Goal {
	if w.o.condition == nil {
		return nil
	}
	var names []string
	for f := range w.followed() {
		names = append(names, f.what())
	}
	return until.NewGoal(*w.o.condition, names...)
}

// judge tells the goal of a change.
func (w *watcher) judge(f *followed, c view.Change) {
	if w.goal == nil {
		return
	}
	name := f.site.prefixed(f.of.Singular + " " + c.Name())
	if c.New == nil {
		w.goal.Delete(f.index, name)
	} else {
		w.goal.Set(f.index, name, view.Fields(c.New))
	}
}

// reached returns what is closed when the goal is reached; nil, which never is, without
// one.
func (w *watcher) reached() <-chan struct{} {
	if w.goal == nil {
		return nil
	}
	return w.goal.Reached()
}

// arm lets the goal be reached once the handlers have been told of all that there was in
// the beginning.
func (w *watcher) arm() {
	if w.goal == nil || w.armed {
		return
	}
	for f := range w.followed() {
		if !f.registration.HasSynced() {
			return
		}
	}
	w.armed = true
	w.goal.Arm()
}

// noteReached says what has come about.
func (w *watcher) noteReached() {
	by := view.Counted(int64(w.goal.Progress(0).Met), "object", "objects")
	if met := w.goal.Progress(0).Met; met == 0 {
		by = "no object left"
	}
	w.note(fmt.Sprintf("%s: %s, after %s", w.o.condition, by, view.Short(time.Since(w.began))))
}

// interrupted is the error of a watch that was ended from outside: none, unless it was
// to wait.
func (o watchOptions) interrupted() error {
	if o.condition == nil {
		return nil
	}
	return fmt.Errorf("interrupted before %s was reached", o.condition)
}

// timedOut is the error of a watch whose time is over: none, unless it was to wait.
func (w *watcher) timedOut() error {
	if w.goal == nil {
		return nil
	}
	p := w.goal.Progress(maxWaiting)
	var why []string
	if len(p.Empty) > 0 {
		why = append(why, "there is no object of "+strings.Join(p.Empty, ", "))
	}
	if p.Unmet > 0 {
		waiting := strings.Join(p.Waiting, ", ")
		if more := p.Unmet - len(p.Waiting); more > 0 {
			waiting += fmt.Sprintf(" and %d more", more)
		}
		why = append(why, fmt.Sprintf("%d of %s not: %s", p.Unmet, countedAre(p.Met+p.Unmet), waiting))
	}
	if !w.synced {
		why = append(why, "not everything was listed")
	}
	return fmt.Errorf("%s was not reached within %s: %s", w.o.condition, view.Short(w.o.timeout), strings.Join(why, "; "))
}

func countedAre(n int) string {
	if n == 1 {
		return "1 object is"
	}
	return view.Counted(int64(n), "object", "objects") + " are"
}
