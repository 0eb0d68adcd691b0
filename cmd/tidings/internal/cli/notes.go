package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/see/format"
)

// showProgress shows the number of objects in the first lists so far: in the status line, or in a
// note now and then without a terminal.
func (w *watcher) showProgress(now time.Time) {
	var parts []string
	for _, t := range w.types {
		if health := t.informer.Health(); !health.Synced {
			parts = append(parts, fmt.Sprintf("%s: %s so far", t,
				format.Counted(health.Listed, "object", "objects")))
		}
	}
	text := "listing " + strings.Join(parts, ", ")
	if screen := w.printer.screen; screen.Live() {
		screen.SetStatus(statusLine(screen, []string{view.Printable(text)}))
	} else if now.Sub(w.progress) >= progressEvery {
		w.progress = now
		w.printer.note(text)
	}
}

func (w *watcher) noteSynced() {
	next := "; now watching for changes, Ctrl-C ends"
	switch {
	case w.o.condition != nil:
		next = "; now waiting " + w.o.awaited()
	case w.recorder != nil:
		next = "; now recording, Ctrl-C ends"
	}
	for i, c := range w.clusters {
		if i < len(w.clusters)-1 {
			w.printer.note(c.contents())
		} else {
			w.printer.note(c.contents() + next)
		}
	}
}

// noteNoValue prints a note if no object has a value at the path of a wait. The path may be
// misspelt.
func (w *watcher) noteNoValue() {
	if p := w.goal.Progress(0); p.Valueless > 0 && p.Valueless == p.Met+p.Unmet {
		w.printer.note(fmt.Sprintf("no object has a value at %s yet: correct the path if it is "+
			"misspelt", w.o.condition.Path()))
	}
}

// awaited describes the condition of a wait.
func (o watchOptions) awaited() string {
	switch {
	case !strings.EqualFold(o.condition.String(), "create"):
		return "for " + o.condition.String()
	case len(o.queries) > 1:
		return "until each exists"
	case o.queries[0].name == "":
		return "until one exists"
	}
	return "until it exists"
}

// contents describes the number of objects of each type in the cluster.
func (c *watchedCluster) contents() string {
	var inNamespaces, clusterScoped []string
	for _, t := range c.types {
		if !t.informer.Health().Synced {
			continue // the server refuses the list
		}
		n := t.informer.Lister().Len()
		count := format.Counted(n, t.of.Singular, t.of.Plural)
		switch {
		case t.name != "" && n == 0:
			count = fmt.Sprintf("no %s %s yet", t.of.Singular, t.name)
		case t.name != "":
			count = t.of.Singular + " " + t.name
		}
		if t.namespaced {
			inNamespaces = append(inNamespaces, count)
		} else {
			clusterScoped = append(clusterScoped, count)
		}
	}
	if last := len(inNamespaces) - 1; last >= 0 {
		inNamespaces[last] += " in " + c.scope("all namespaces")
	}
	text := strings.Join(append(inNamespaces, clusterScoped...), ", ")
	return c.prefixed(cmp.Or(text, "no type that may be watched"))
}

// scope returns the namespaces as text; all is the text for all of them.
func (c *watchedCluster) scope(all string) string {
	switch len(c.namespaces) {
	case 0:
		return all
	case 1:
		return fmt.Sprintf("namespace %q", c.namespaces[0])
	}
	return "the namespaces " + strings.Join(c.namespaces, ", ")
}

func (w *watcher) noteStates() {
	for _, t := range w.types {
		health := t.informer.Health()
		if health.State == t.state {
			continue
		}
		t.state = health.State
		if note := w.stateNote(t, health); note != "" {
			w.printer.note(t.String() + ": " + note)
		}
	}
}

// stateNote describes the new state of an informer, "" for a state without a note.
func (w *watcher) stateNote(t *watchedType, health tidings.Health) string {
	switch health.State {
	case tidings.StateWatching:
		return "watching again"
	case tidings.StateListing:
		return "listing again"
	case tidings.StateSilent:
		return "the watch is silent; connecting again"
	case tidings.StateBackoff:
		if problem.Lost(health.LastError) {
			return fmt.Sprintf("lost %s (%s); trying again", t.cluster.target.Server,
				problem.Reason(health.LastError))
		}
	case tidings.StateForbidden, tidings.StateNoSuchResource:
	default:
		return ""
	}
	return fmt.Sprintf("%v; trying again", w.explain(t, health.LastError))
}

func (w *watcher) drawStatus(now time.Time) {
	screen := w.printer.screen
	if !screen.Live() {
		return
	}
	var parts, failing []string
	if w.goal != nil {
		p := w.goal.Progress(0)
		parts = append(parts, view.Printable(fmt.Sprintf("%s: %d of %d", w.o.condition, p.Met,
			p.Met+p.Unmet)))
	}
	var informers []tidings.Health
	for _, c := range w.clusters {
		for _, health := range c.factory.Health() {
			if len(w.clusters) > 1 {
				health.Version = "" // each cluster has versions of its own
			}
			informers = append(informers, health)
		}
	}
	parts = append(parts, w.printer.status(informers, now)...)
	if w.o.timeout > 0 {
		parts = append(parts, remaining(w.o.timeout, w.began, now))
	}
	line := statusLine(screen, parts)
	for _, t := range w.types {
		if t.state.Failing() {
			failing = append(failing, t.String())
		}
	}
	if len(failing) > 0 {
		line += " · " + screen.Palette().Red(view.Printable("not watching "+strings.Join(failing, ", ")))
	}
	screen.SetStatus(line)
}

func (w *watcher) summarise() {
	p := w.printer.screen.NotePalette()
	did := "watched"
	if w.recorder != nil {
		did = "recorded"
	}
	heading := p.Dim("── " + did + " for " + format.Short(time.Since(w.began)))
	w.printer.screen.Note(heading + "\n" + view.Table(w.printer.tally.Counts(), p))
}

func (w *watcher) noteReached() {
	objects := "no object left"
	if met := w.goal.Progress(0).Met; met > 0 {
		objects = format.Counted(met, "object", "objects")
	}
	w.printer.note(fmt.Sprintf("%s: %s, after %s", w.o.condition, objects,
		format.Short(time.Since(w.began))))
}

// interrupted returns the error of a watch after Ctrl-C: nil for a watch without a condition.
func (o watchOptions) interrupted() error {
	if o.condition == nil {
		return nil
	}
	return fmt.Errorf("interrupted before %s was reached", o.condition)
}

// unprinted returns the error of a watch whose output fails. A reader that has closed the output is
// an error of a watch with a condition, which was not reached.
func (w *watcher) unprinted() error {
	if isReaderGone(w.printer.err) && w.goal != nil {
		return fmt.Errorf("the reader of the output went away before %s was reached", w.o.condition)
	}
	return w.printer.err
}

// maxWaiting is the largest number of unmet objects that an error names.
const maxWaiting = 5

// timedOut returns the error of a watch after its timeout: nil for a watch without a condition.
func (w *watcher) timedOut() error {
	if w.goal == nil {
		return nil
	}
	return fmt.Errorf("%s was not reached within %s: %s", w.o.condition, format.Short(w.o.timeout),
		w.unmet())
}

// unmet describes the objects that a wait still needs: those that do not exist, and those with
// other values.
func (w *watcher) unmet() string {
	p := w.goal.Progress(maxWaiting)
	var why []string
	for _, t := range w.types {
		if slices.Contains(p.Empty, t.index) {
			why = append(why, t.absence())
		}
	}
	if p.Unmet > 0 {
		waiting := strings.Join(p.Waiting, ", ")
		if more := p.Unmet - len(p.Waiting); more > 0 {
			waiting += fmt.Sprintf(" and %d more", more)
		}
		verb := "do"
		if p.Unmet == 1 {
			verb = "does"
		}
		why = append(why, fmt.Sprintf("%d of %s %s not meet it: %s", p.Unmet,
			format.Counted(p.Met+p.Unmet, "object", "objects"), verb, waiting))
	}
	if !w.synced {
		why = append(why, "not everything was listed")
	}
	return strings.Join(why, "; ")
}

// absence returns a text about the absence of any object of the type, or of the object with the
// name.
func (t *watchedType) absence() string {
	text := "there are no " + t.of.Plural
	if t.name != "" {
		text = "there is no " + t.of.Singular + " " + t.name
	}
	if t.namespaced {
		text += " in " + t.cluster.scope("any namespace")
	}
	return t.cluster.prefixed(text)
}

// checkSynced reports whether all informers have listed, except those that the server refuses. It
// returns an error if one of them cannot list. It returns the errors of refusals if all are refused
// or a wait cannot succeed.
func (w *watcher) checkSynced() (bool, error) {
	waiting, synced, refusals := 0, 0, map[*watchedType]error{}
	for _, t := range w.types {
		health := t.informer.Health()
		t.state = health.State
		switch {
		case health.Synced:
			synced++
		case isRefused(health) && w.goal == nil:
			refusals[t] = w.explain(t, health.LastError)
		case isRefused(health) || isHopeless(health):
			return false, w.explain(t, health.LastError)
		default:
			waiting++
			w.noteFailure(t, health)
		}
	}
	var errs []error
	for _, t := range w.types {
		err := refusals[t]
		if errs = append(errs, err); err != nil && synced > 0 && !t.refused {
			t.refused = true
			w.warnings.Note("tidings: " + view.Printable(
				fmt.Sprintf("%s: %v; watching the other types", t, err)))
		}
	}
	if waiting+synced == 0 {
		return false, errors.Join(errs...)
	}
	return waiting == 0, nil
}

func (w *watcher) noteFailure(t *watchedType, health tidings.Health) {
	note := fmt.Sprintf("%s: %v; trying again", t, w.explain(t, health.LastError))
	if health.State == tidings.StateBackoff && note != t.noted {
		t.noted = note
		w.printer.note(note)
	}
}

// isRefused reports whether the server answers that a type may not be listed or does not exist.
func isRefused(health tidings.Health) bool {
	switch health.State {
	case tidings.StateForbidden, tidings.StateNoSuchResource:
		return health.LastError != nil
	}
	return false
}

// isHopeless reports whether a wait for the first list is unlikely to succeed.
func isHopeless(health tidings.Health) bool {
	return health.State == tidings.StateBackoff && health.LastError != nil &&
		(problem.Unreachable(health.LastError) || apierrors.IsBadRequest(health.LastError))
}
