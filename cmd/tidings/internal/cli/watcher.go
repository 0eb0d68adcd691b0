package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/until"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/flight"
)

const (
	// checkEvery is the period in which a watcher checks the health of its informers and draws the
	// status line.
	checkEvery = 100 * time.Millisecond
	// connectNote is the time after which a watcher prints that it waits for the types of a
	// cluster.
	connectNote = time.Second
	// progressAfter is the time after which the progress of the first lists is shown, progressEvery
	// its period without a terminal.
	progressAfter, progressEvery = time.Second, 5 * time.Second
)

type watcher struct {
	o        watchOptions
	printer  *printer
	warnings *view.Screen // printed also with -q
	clusters []*watchedCluster
	types    []*watchedType // of all clusters
	began    time.Time
	synced   bool        // all informers have listed
	progress time.Time   // time at which progress was last printed
	goal     *until.Goal // nil for none
	armed    bool        // goal.Arm was called

	// recorder records the requests and answers of the informers, in place of printed changes; nil
	// for a watch. dir is the directory of its files. asked receives a signal for each request of a
	// file.
	recorder *flight.Recorder
	dir      string
	asked    <-chan os.Signal
}

type watchedCluster struct {
	*cluster
	label      string   // the context if there are several clusters, "" otherwise
	namespaces []string // empty for all
	factory    *tidings.Factory
	types      []*watchedType
}

// watchedType is the informer of the objects of a type, or of one of them.
type watchedType struct {
	cluster      *watchedCluster
	index        int // in the types of the watcher
	of           view.Type
	name         string // of the object, "" for all
	namespaced   bool
	informer     *tidings.Informer[*unstructured.Unstructured]
	registration *tidings.Registration
	state        tidings.State // as last printed
	noted        string        // the last note about its first list
	refused      bool          // the warning about the refusal was printed
}

// String returns the name of the type or the object: pods, or pod/web.
func (t *watchedType) String() string {
	text := t.of.Plural
	if t.name != "" {
		text = t.of.Singular + "/" + t.name
	}
	return t.cluster.prefixed(text)
}

// prefixed adds the label of the cluster to a text.
func (c *watchedCluster) prefixed(text string) string {
	if c.label == "" {
		return text
	}
	return c.label + ": " + text
}

func runWatch(ctx context.Context, c *common, o watchOptions, flags *clusterFlags) error {
	secrecy := view.Secrecy{Show: o.showSecrets}
	w := c.newWatcher(o, secrecy)
	options := tidings.FactoryOptions{Logger: c.logger(w.warnings, secrecy)}
	if err := w.open(ctx, flags, options); err != nil {
		return err
	}
	return w.run(ctx)
}

// newWatcher returns a watcher without clusters.
func (c *common) newWatcher(o watchOptions, secrecy view.Secrecy) *watcher {
	w := &watcher{o: o, warnings: c.screen()}
	screen := w.warnings
	if o.quiet {
		screen = c.screenWith(io.Discard)
	}
	w.printer = &printer{screen: screen, secrecy: secrecy}
	return w
}

// open opens the clusters of flags, with informers for the types of the queries, which do not run
// yet. If ctx ends meanwhile, the watcher has no clusters.
func (w *watcher) open(ctx context.Context, flags *clusterFlags, options tidings.FactoryOptions) error {
	all := flags.each()
	for _, one := range all {
		opened, err := open(ctx, one)
		if err != nil {
			return err
		}
		watched := &watchedCluster{cluster: opened}
		if len(all) > 1 {
			watched.label = opened.target.Context
		}
		w.clusters = append(w.clusters, watched)
	}
	types, err := w.discoverTypes()
	if ctx.Err() != nil {
		w.clusters = nil
		return nil
	}
	var shown []view.Type
	for i, c := range w.clusters {
		if err == nil {
			err = c.chooseNamespaces(w.o.allNamespaces, flags.namespaces, types[i])
		}
		if err == nil {
			err = c.addTypes(w.o.choice, types[i], options)
		}
		for _, t := range c.types {
			t.index, w.types = len(w.types), append(w.types, t)
			if !slices.Contains(shown, t.of) {
				shown = append(shown, t.of)
			}
		}
	}
	w.printer.show(shown)
	if w.o.output != "" {
		w.printer.render = view.NewDocuments(w.o.output, w.o.events).Render
	}
	if w.o.condition != nil {
		w.goal = until.NewGoal(*w.o.condition, len(w.types))
	}
	return err
}

// discoverTypes finds the types of the queries on all clusters concurrently.
func (w *watcher) discoverTypes() ([][]*meta.RESTMapping, error) {
	types, errs := make([][]*meta.RESTMapping, len(w.clusters)), make([]error, len(w.clusters))
	var asked sync.WaitGroup
	for i, c := range w.clusters {
		asked.Go(func() {
			late := time.AfterFunc(connectNote, func() {
				text := "asking " + c.target.Server + " for its types …"
				w.printer.screen.Note(w.printer.screen.NotePalette().Dim(text))
			})
			defer late.Stop()
			types[i], errs[i] = c.discover(w.o.queries)
			if errs[i] != nil && c.label != "" {
				errs[i] = fmt.Errorf("context %q: %w", c.label, errs[i])
			}
		})
	}
	asked.Wait()
	return types, errors.Join(errs...)
}

// chooseNamespaces sets the namespaces to watch: those of the flags, or the namespace of the
// context. A namespace flag for types without namespaces is an error of the command line.
func (c *watchedCluster) chooseNamespaces(all bool, named []string, types []*meta.RESTMapping) error {
	namespace, err := c.cluster.namespace()
	if err != nil {
		return err
	}
	switch {
	case len(named) > 0 && !slices.ContainsFunc(types, isNamespaced):
		return problem.Usage("%s have no namespace: leave out --namespace", types[0].Resource.Resource)
	case all:
	case len(named) > 0:
		c.namespaces = slices.Compact(slices.Sorted(slices.Values(named)))
	default:
		c.namespaces = []string{namespace}
	}
	return nil
}

func isNamespaced(mapping *meta.RESTMapping) bool {
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// addTypes creates the informers for queries, with the types of the queries.
func (c *watchedCluster) addTypes(
	o choice, types []*meta.RESTMapping, options tidings.FactoryOptions,
) (err error) {
	if c.factory, err = tidings.NewFactory(c.config, options); err != nil {
		return c.target.Explain(err)
	}
	for i, mapping := range types {
		kind := mapping.GroupVersionKind
		t := &watchedType{
			cluster: c, name: o.queries[i].name, namespaced: isNamespaced(mapping),
			of: view.Type{Kind: kind, Singular: strings.ToLower(kind.Kind),
				Plural: mapping.Resource.Resource, Context: c.label},
		}
		if slices.ContainsFunc(c.types,
			func(other *watchedType) bool { return other.of == t.of && other.name == t.name }) {
			continue // the same type by another name
		}
		selection := tidings.Selection{AllNamespaces: true, Labels: o.labels, Fields: o.fields}
		if t.namespaced && len(c.namespaces) > 0 {
			selection.AllNamespaces, selection.Namespaces = false, c.namespaces
		}
		if t.name != "" {
			selection.Fields = fields.OneTermEqualSelector(metav1.ObjectNameField, t.name).String()
		}
		if t.informer, err = tidings.Dynamic(c.factory, mapping.Resource, selection); err != nil {
			return c.target.Explain(err)
		}
		c.types = append(c.types, t)
	}
	return nil
}

// run watches until the goal is reached, the time is over, or ctx ends.
func (w *watcher) run(ctx context.Context) error {
	if w.clusters == nil {
		return w.o.interrupted() // Ctrl-C while connecting
	}
	w.began = time.Now()
	err := w.start(ctx)
	switch {
	case err == nil:
		err = w.loop(ctx)
	case ctx.Err() != nil:
		err = w.o.interrupted()
	}
	w.printer.screen.SetStatus("")
	if err == nil && w.recorder != nil { // before the shutdown: it drops the records
		err = w.writeRecording("the end of tidings record")
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var stopErr error
	for _, c := range w.clusters {
		stopErr = errors.Join(stopErr, c.factory.Shutdown(stopping))
	}
	if err == nil {
		w.summarise()
		err = stopErr
	}
	return err
}

func (w *watcher) start(ctx context.Context) (err error) {
	for _, t := range w.types {
		handler := view.Handler[*unstructured.Unstructured](t.of,
			func(c view.Change) { w.receive(t, c) })
		t.registration, err = t.informer.AddHandler(handler, tidings.HandlerOptions{Name: "print"})
		if err != nil {
			return err
		}
	}
	if w.recorder != nil {
		ctx = context.WithoutCancel(ctx) // Ctrl-C ends the informers after the file is written
	}
	for _, c := range w.clusters {
		if err := c.factory.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// receive counts and prints a change, and passes it on to the goal. Handlers call it.
func (w *watcher) receive(t *watchedType, c view.Change) {
	w.printer.tally.Count(c)
	if w.recorder == nil && (!c.Initial || w.o.initial) {
		w.printer.print(c)
	}
	if w.goal == nil {
		return
	}
	name := t.cluster.prefixed(t.of.Singular + " " + c.Name())
	if c.New == nil {
		w.goal.Delete(t.index, name)
	} else {
		shown := w.printer.secrecy.Apply(c)
		w.goal.Set(t.index, name, view.Fields(c.New), view.Fields(shown.New))
	}
}

// loop checks the informers until the watch ends.
func (w *watcher) loop(ctx context.Context) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	var over <-chan time.Time
	if w.o.timeout > 0 {
		over = time.After(w.o.timeout)
	}
	var reached <-chan struct{}
	if w.goal != nil {
		reached = w.goal.Reached()
	}
	for {
		select {
		case <-reached:
			w.noteReached()
			return nil
		case <-ctx.Done():
			if err := w.o.interrupted(); err != nil {
				return fmt.Errorf("%w: %s", err, w.unmet())
			}
			return nil
		case <-over:
			return w.timedOut()
		case s := <-w.asked:
			if err := w.writeRecording("signal: " + s.String()); err != nil {
				return err
			}
		case <-w.printer.failed:
			return w.unprinted()
		case now := <-ticker.C:
			if err := w.check(now); err != nil {
				return err
			}
		}
	}
}

// check prints the progress of the first lists, and later the changes of the informers' states.
func (w *watcher) check(now time.Time) error {
	if w.synced {
		w.arm()
		w.noteStates()
		if !w.o.quiet {
			w.drawStatus(now)
		}
		return nil
	}
	synced, err := w.checkSynced()
	switch {
	case err != nil:
		return err
	case synced:
		w.synced = true
		w.noteSynced()
		w.arm()
	case now.Sub(w.began) >= progressAfter && !w.o.quiet:
		w.showProgress(now)
	}
	return nil
}

// arm arms the goal once the handlers have received the initial objects.
func (w *watcher) arm() {
	if w.goal == nil || w.armed {
		return
	}
	for _, t := range w.types {
		if !t.registration.HasSynced() {
			return
		}
	}
	w.armed = true
	w.goal.Arm()
	w.noteNoValue()
}

func (w *watcher) explain(t *watchedType, err error) error {
	target := t.cluster.target
	target.ClusterScoped = !t.namespaced
	return target.Explain(w.printer.secrecy.Error(err))
}
