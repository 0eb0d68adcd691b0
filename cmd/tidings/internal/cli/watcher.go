package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/resolve"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/reflector"
)

const (
	// lookEvery is how often a watcher looks at the health of its informers and
	// draws the status line.
	lookEvery = 100 * time.Millisecond
	// progressAfter is how long an initial list may take before its progress is
	// shown, progressEvery how often that is without a terminal.
	progressAfter, progressEvery = time.Second, 5 * time.Second
	// stopTimeout bounds how long a command waits for the informers to stop.
	stopTimeout = 5 * time.Second
)

// watcher follows the types of one cluster and shows what happens to them.
type watcher struct {
	o       watchOptions
	target  problem.Target
	screen  *view.Screen
	secrecy view.Secrecy
	where   string // the namespaces, in words

	factory  *tidings.Factory
	followed []*followed
	tally    *view.Tally
	heap     view.Heap
	began    time.Time

	synced     bool      // all have listed
	progressed time.Time // when progress was last shown

	rendering sync.Mutex // held by one handler at a time; guards render and failure
	render    func(view.Change) (string, error)
	failure   error // the first of rendering or printing
	failed    chan struct{}
}

// followed is one type with its informer.
type followed struct {
	of         view.Type
	namespaced bool
	informer   *tidings.Informer[*unstructured.Unstructured]
	state      tidings.State // as last shown
	noted      string        // the last note about its first list
}

func newWatcher(c *cluster, common *common, screen *view.Screen, o watchOptions, types []resolve.Type, namespace string) (*watcher, error) {
	w := &watcher{
		o: o, target: c.target, screen: screen, secrecy: view.Secrecy{Show: o.showSecrets},
		where: "in all namespaces", failed: make(chan struct{}), began: time.Now(),
	}
	if namespace != "" {
		w.where = fmt.Sprintf("in namespace %q", namespace)
	}
	var err error
	w.factory, err = tidings.NewFactory(c.config, tidings.FactoryOptions{Logger: common.logger(screen, w.secrecy)})
	if err != nil {
		return nil, c.target.Explain(err)
	}
	var shown []view.Type
	for _, t := range types {
		of := view.Type{Kind: t.Kind, Singular: t.Singular, Plural: t.Resource.Resource}
		if followsAlready(shown, of) {
			continue
		}
		shown = append(shown, of)
		selection := tidings.Selection{AllNamespaces: true, Labels: o.labels, Fields: o.fields}
		if t.Namespaced && namespace != "" {
			selection.AllNamespaces, selection.Namespace = false, namespace
		}
		informer, err := tidings.Dynamic(w.factory, t.Resource, selection)
		if err != nil {
			return nil, c.target.Explain(err)
		}
		w.followed = append(w.followed, &followed{of: of, namespaced: t.Namespaced, informer: informer})
	}
	w.tally = view.NewTally(shown)
	w.render, err = w.renderer(shown)
	return w, err
}

func followsAlready(types []view.Type, of view.Type) bool {
	for _, other := range types {
		if other.Kind == of.Kind && other.Plural == of.Plural {
			return true
		}
	}
	return false
}

// renderer returns what turns a change into text.
func (w *watcher) renderer(types []view.Type) (func(view.Change) (string, error), error) {
	if w.o.output != "" {
		documents, err := view.NewDocuments(w.o.output, w.o.events)
		if err != nil {
			return nil, err
		}
		return documents.Render, nil
	}
	lines := view.NewLines(view.LinesOptions{Palette: w.screen.Palette(), Width: w.screen.Width, Types: types})
	return func(c view.Change) (string, error) { return lines.Render(c), nil }, nil
}

// take shows a change. It is called by the handlers.
func (w *watcher) take(c view.Change) {
	w.tally.Count(c)
	if c.Initial && !w.o.initial {
		return
	}
	w.rendering.Lock()
	defer w.rendering.Unlock()
	if w.failure != nil {
		return
	}
	text, err := w.render(w.secrecy.Apply(c))
	if err == nil {
		err = w.screen.Print(text)
	}
	if err != nil {
		w.failure = err
		close(w.failed)
	}
}

// run follows the types until ctx ends, which is no error.
func (w *watcher) run(ctx context.Context) error {
	for _, f := range w.followed {
		handler := view.Handler[*unstructured.Unstructured](f.of, w.take)
		if _, err := f.informer.AddHandler(handler, tidings.HandlerOptions{Name: "view"}); err != nil {
			return err
		}
	}
	if err := w.factory.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	err := w.follow(ctx)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	stopErr := w.factory.Shutdown(stopping)
	w.screen.Close()
	if err != nil {
		return err
	}
	w.summarise()
	return stopErr
}

// follow looks at the informers until ctx ends or they cannot begin.
func (w *watcher) follow(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.failed:
			return w.failure
		case now := <-ticker.C:
			if err := w.look(now); err != nil {
				return err
			}
		}
	}
}

// look shows how the informers are: how far their first lists are, and then which
// ones are in trouble.
func (w *watcher) look(now time.Time) error {
	if w.synced {
		w.noteStates()
		w.drawStatus(now)
		return nil
	}
	synced, err := w.beginning()
	switch {
	case err != nil:
		return err
	case synced:
		w.synced = true
		w.noteSynced()
	case now.Sub(w.began) >= progressAfter:
		w.showProgress(now)
	}
	return nil
}

// beginning looks at informers that have not all listed: whether they have now, and
// whether one cannot.
func (w *watcher) beginning() (bool, error) {
	synced := true
	for _, f := range w.followed {
		health := f.informer.Health()
		f.state = health.State
		if health.Synced {
			continue
		}
		synced = false
		if hopeless(health) {
			return false, w.explain(f, health.LastError)
		}
		if health.State == reflector.BackingOff {
			w.noteOnce(f, fmt.Sprintf("%s: %v; trying again", f.of.Plural, w.explain(f, health.LastError)))
		}
	}
	return synced, nil
}

// explain says what to do about the error of an informer.
func (w *watcher) explain(f *followed, err error) error {
	target := w.target
	target.ClusterScoped = !f.namespaced
	return target.Explain(w.secrecy.Error(err))
}

// hopeless reports whether waiting for the first list is of no use to somebody who
// sits in front of it.
func hopeless(health tidings.Health) bool {
	if health.LastError == nil {
		return false
	}
	switch health.State {
	case reflector.Forbidden, reflector.NoSuchResource:
		return true
	case reflector.BackingOff:
		return problem.Unreachable(health.LastError) || apierrors.IsBadRequest(health.LastError)
	}
	return false
}

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
	for _, f := range w.followed {
		if health := f.informer.Health(); !health.Synced {
			parts = append(parts, fmt.Sprintf("%s: %s so far", f.of.Plural, view.Counted(int64(health.Listed), "object", "objects")))
		}
	}
	if len(parts) > 0 {
		w.screen.Progress(w.screen.NotePalette().Dim("── listing " + strings.Join(parts, ", ")))
	}
}

// noteSynced says what there is.
func (w *watcher) noteSynced() {
	w.screen.Progress("")
	var inNamespaces, clusterWide []string
	for _, f := range w.followed {
		count := view.Counted(int64(f.informer.Lister().Len()), f.of.Singular, f.of.Plural)
		if f.namespaced {
			inNamespaces = append(inNamespaces, count)
		} else {
			clusterWide = append(clusterWide, count)
		}
	}
	if last := len(inNamespaces) - 1; last >= 0 {
		inNamespaces[last] += " " + w.where
	}
	w.note(strings.Join(append(inNamespaces, clusterWide...), ", ") + "; now watching for changes, Ctrl-C ends")
}

// noteStates says which informers are in another state than they were, in one line
// for those of which the same is to be said.
func (w *watcher) noteStates() {
	var notes []string
	plurals := make(map[string][]string)
	for _, f := range w.followed {
		health := f.informer.Health()
		if health.State == f.state {
			continue
		}
		f.state = health.State
		note := w.stateNote(f, health)
		if note == "" {
			continue
		}
		if plurals[note] == nil {
			notes = append(notes, note)
		}
		plurals[note] = append(plurals[note], f.of.Plural)
	}
	for _, note := range notes {
		w.note(strings.Join(plurals[note], ", ") + ": " + note)
	}
}

// stateNote says what a state that an informer has come into means.
func (w *watcher) stateNote(f *followed, health tidings.Health) string {
	switch health.State {
	case reflector.Watching:
		return "following again"
	case reflector.Listing:
		return "reading everything again"
	case reflector.Silent:
		return "the watch has gone silent; connecting again"
	case reflector.BackingOff:
		if problem.Lost(health.LastError) {
			return fmt.Sprintf("lost %s (%s); trying again", w.target.Server, problem.Reason(health.LastError))
		}
	case reflector.Forbidden, reflector.NoSuchResource:
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
	status := statusOf(w.factory.Health())
	status.Rate, status.Heap = w.tally.Rate(now), heap
	var troubled []string
	for _, f := range w.followed {
		if f.state.Failing() {
			troubled = append(troubled, f.of.Plural)
		}
	}
	if len(troubled) > 0 {
		status.Trouble = "not following " + strings.Join(troubled, ", ")
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
