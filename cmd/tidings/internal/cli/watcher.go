package cli

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/until"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
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

// watcher follows types of some clusters and shows what happens to them.
type watcher struct {
	o       watchOptions
	screen  *view.Screen
	secrecy view.Secrecy
	sites   []*site
	tally   *view.Tally
	heap    view.Heap
	began   time.Time

	synced     bool      // all have listed
	progressed time.Time // when progress was last shown

	goal  *until.Goal // nil for none
	armed bool        // the goal can be reached

	rendering sync.Mutex // held by one handler at a time; guards render and failure
	render    func(view.Change) (string, error)
	failure   error // the first of rendering or printing
	failed    chan struct{}
}

// newWatcher returns a watcher of sites that know what they follow.
func newWatcher(screen *view.Screen, o watchOptions, secrecy view.Secrecy, sites []*site) (*watcher, error) {
	w := &watcher{o: o, screen: screen, secrecy: secrecy, sites: sites, failed: make(chan struct{}), began: time.Now()}
	var shown []view.Type
	seen := make(map[view.Type]bool)
	index := 0
	for f := range w.followed() {
		f.index = index
		index++
		if !seen[f.of] {
			seen[f.of] = true
			shown = append(shown, f.of)
		}
	}
	w.tally, w.goal = view.NewTally(shown), w.newGoal()
	var err error
	w.render, err = w.renderer(shown)
	return w, err
}

// followed yields what is followed on all sites.
func (w *watcher) followed() iter.Seq[*followed] {
	return func(yield func(*followed) bool) {
		for _, s := range w.sites {
			for _, f := range s.followed {
				if !yield(f) {
					return
				}
			}
		}
	}
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

// run follows the types until the goal is reached, the time is over, or ctx ends.
func (w *watcher) run(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
		if ctx.Err() != nil {
			return w.o.interrupted()
		}
		return err
	}
	err := w.follow(ctx)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var stopErr error
	for _, s := range w.sites {
		stopErr = errors.Join(stopErr, s.factory.Shutdown(stopping))
	}
	w.screen.Close()
	if err != nil {
		return err
	}
	w.summarise()
	return stopErr
}

func (w *watcher) start(ctx context.Context) error {
	for f := range w.followed() {
		var err error
		handler := view.Handler[*unstructured.Unstructured](f.of, func(c view.Change) {
			w.take(c)
			w.judge(f, c)
		})
		if f.registration, err = f.informer.AddHandler(handler, tidings.HandlerOptions{Name: "view"}); err != nil {
			return err
		}
	}
	for _, s := range w.sites {
		if err := s.factory.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// follow looks at the informers until there is a reason to end, or they cannot begin.
func (w *watcher) follow(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var over <-chan time.Time
	if w.o.timeout > 0 {
		over = time.After(w.o.timeout)
	}
	for {
		select {
		case <-w.reached():
			w.noteReached()
			return nil
		case <-ctx.Done():
			return w.o.interrupted()
		case <-over:
			return w.timedOut()
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
		w.arm()
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
		w.arm()
	case now.Sub(w.began) >= progressAfter:
		w.showProgress(now)
	}
	return nil
}

// beginning looks at informers that have not all listed: whether they have now, and
// whether one cannot.
func (w *watcher) beginning() (bool, error) {
	synced := true
	for f := range w.followed() {
		health := f.informer.Health()
		f.state = health.State
		if health.Synced {
			continue
		}
		synced = false
		if hopeless(health) {
			return false, w.explain(f, health.LastError)
		}
		if health.State == tidings.Backoff {
			w.noteOnce(f, f.what()+": "+w.explain(f, health.LastError).Error()+"; trying again")
		}
	}
	return synced, nil
}

// explain says what to do about the error of an informer.
func (w *watcher) explain(f *followed, err error) error {
	target := f.site.cluster.target
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
	case tidings.Forbidden, tidings.NoSuchResource:
		return true
	case tidings.Backoff:
		return problem.Unreachable(health.LastError) || apierrors.IsBadRequest(health.LastError)
	}
	return false
}
