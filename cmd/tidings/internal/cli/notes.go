package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

func (w *watcher) noteOnce(f *followed, note string) {
	if note != f.noted {
		f.noted = note
		w.note(note)
	}
}

func (w *watcher) note(text string) {
	w.screen.Note(w.screen.NotePalette().Dim("── " + problem.OneLine(text)))
}

// showProgress says how far the first lists are, without a terminal only now and
// then.
func (w *watcher) showProgress(now time.Time) {
	if !w.screen.ErrLive() && now.Sub(w.progressed) < progressEvery {
		return
	}
	w.progressed = now
	var parts []string
	for f := range w.followed() {
		if health := f.informer.Health(); !health.Synced {
			parts = append(parts, fmt.Sprintf("%s: %s so far", f.what(), view.Counted(int64(health.Listed), "object", "objects")))
		}
	}
	if len(parts) > 0 {
		w.screen.Progress(w.screen.NotePalette().Dim("── listing " + strings.Join(parts, ", ")))
	}
}

// noteSynced says what there is, a line for each site.
func (w *watcher) noteSynced() {
	w.screen.Progress("")
	doing := "now watching for changes, Ctrl-C ends"
	if w.o.condition != nil {
		doing = "now waiting for " + w.o.condition.String()
	}
	for i, s := range w.sites {
		text := s.held()
		if i == len(w.sites)-1 {
			text += "; " + doing
		}
		w.note(text)
	}
}

// noteStates says which informers are in another state than they were, in one line
// for those of which the same is to be said.
func (w *watcher) noteStates() {
	var notes []string
	subjects := make(map[string][]string)
	for f := range w.followed() {
		health := f.informer.Health()
		if health.State == f.state {
			continue
		}
		f.state = health.State
		note := w.stateNote(f, health)
		if note == "" {
			continue
		}
		if subjects[note] == nil {
			notes = append(notes, note)
		}
		subjects[note] = append(subjects[note], f.what())
	}
	for _, note := range notes {
		w.note(strings.Join(subjects[note], ", ") + ": " + note)
	}
}

// stateNote says what a state that an informer has come into means.
func (w *watcher) stateNote(f *followed, health tidings.Health) string {
	switch health.State {
	case tidings.Watching:
		return "following again"
	case tidings.Listing:
		return "reading everything again"
	case tidings.Silent:
		return "the watch has gone silent; connecting again"
	case tidings.Backoff:
		if problem.Lost(health.LastError) {
			return fmt.Sprintf("lost %s (%s); trying again", f.site.cluster.target.Server, problem.Reason(health.LastError))
		}
	case tidings.Forbidden, tidings.NoSuchResource:
	default:
		return ""
	}
	return fmt.Sprintf("%v; trying again", w.explain(f, health.LastError))
}

func (w *watcher) drawStatus(now time.Time) {
	heap := w.heap.Sample()
	if !w.screen.Live() {
		return
	}
	var informers []tidings.Health
	for _, s := range w.sites {
		informers = append(informers, s.factory.Health()...)
	}
	status := statusOf(informers)
	if len(w.sites) > 1 {
		status.Version = "" // each has its own
	}
	status.Rate, status.Heap = w.tally.Rate(now), heap
	var troubled []string
	for f := range w.followed() {
		if f.state.Failing() {
			troubled = append(troubled, f.what())
		}
	}
	if len(troubled) > 0 {
		status.Trouble = "not following " + strings.Join(troubled, ", ")
	}
	if w.goal != nil {
		p := w.goal.Progress(0)
		status.Goal = fmt.Sprintf("%s: %d of %d", w.o.condition, p.Met, p.Met+p.Unmet)
	}
	if w.o.timeout > 0 {
		status.Left = max(time.Second, w.o.timeout-now.Sub(w.began))
	}
	w.screen.SetStatus(status.Line(w.screen.Palette()))
}

// summarise says what was seen.
func (w *watcher) summarise() {
	p := w.screen.NotePalette()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.Dim(fmt.Sprintf("── watched for %s", view.Short(time.Since(w.began)))))
	b.WriteString(view.Table(w.tally.Counts(), p))
	w.screen.NoteText(b.String())
}
