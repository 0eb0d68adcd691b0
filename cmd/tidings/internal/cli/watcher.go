package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/until"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

const (
	// checkEvery is how often a watcher checks the health of its informers and draws the status
	// line.
	checkEvery = 100 * time.Millisecond
	// connectNote is after how long a watcher says that it waits for the types of a cluster.
	connectNote = time.Second
	// progressAfter is after how long the progress of the first lists is shown, progressEvery how
	// often it is printed without a terminal.
	progressAfter, progressEvery = time.Second, 5 * time.Second
)

// watcher watches types of some clusters and shows their changes.
type watcher struct {
	o        watchOptions
	printer  *printer
	warnings *view.Screen // also with -q
	clusters []*watchedCluster
	began    time.Time
	synced   bool        // all informers have listed
	progress time.Time   // when progress was last printed
	goal     *until.Goal // nil for none
	// recording receives what the informers read, in place of the changes; nil for a watch.
	recording *recording
	armed     bool // the goal can be reached
}

// watchedCluster is a cluster with its watched types.
type watchedCluster struct {
	*cluster
	label      string   // the context if there are several clusters, "" otherwise
	namespaces []string // none for all
	factory    *tidings.Factory
	types      []*watchedType
}

// watchedType is the informer of the objects of a type, or of one of them.
type watchedType struct {
	cluster      *watchedCluster
	index        int // among the types of all clusters
	of           view.Type
	name         string // of the one object, "" for all
	namespaced   bool
	informer     *tidings.Informer[*unstructured.Unstructured]
	registration *tidings.Registration
	state        tidings.State // as last printed
	noted        string        // the last note about its first list
	refused      bool          // the warning about it was printed
}

// String names the type or the object: pods, or pod/web.
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

func runWatch(cmd *cobra.Command, c *common, o watchOptions, flags *clusterFlags) error {
	ctx, warnings, secrecy := cmd.Context(), c.screen(cmd), view.Secrecy{Show: o.showSecrets}
	screen := warnings
	if o.quiet {
		screen = c.screenWith(cmd, io.Discard)
	}
	options := tidings.FactoryOptions{Logger: c.logger(warnings, secrecy)}
	clusters, err := openClusters(cmd, screen, o, flags, options)
	if err != nil {
		return err
	}
	if clusters == nil {
		return o.interrupted() // Ctrl-C while connecting
	}
	w := newWatcher(screen, o, secrecy, clusters)
	w.warnings = warnings
	return w.run(ctx)
}

// openClusters returns the clusters of flags with informers for the types of the queries, which do
// not run yet; none if the command has ended meanwhile.
func openClusters(cmd *cobra.Command, screen *view.Screen, o watchOptions, flags *clusterFlags,
	options tidings.FactoryOptions) ([]*watchedCluster, error) {
	ctx := cmd.Context()
	var clusters []*watchedCluster
	all := flags.each()
	for _, one := range all {
		opened, err := open(ctx, one)
		if err != nil {
			return nil, err
		}
		watched := &watchedCluster{cluster: opened}
		if len(all) > 1 {
			watched.label = opened.target.Context
		}
		clusters = append(clusters, watched)
	}
	types, err := discoverTypes(clusters, o.queries, screen)
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i, watched := range clusters {
		err := watched.chooseNamespaces(cmd.CommandPath(), o.allNamespaces, flags.namespaces, types[i])
		if err != nil {
			return nil, err
		}
		if err := watched.addTypes(o, types[i], options); err != nil {
			return nil, err
		}
	}
	return clusters, nil
}

// discoverTypes finds the types of queries on all clusters at once.
func discoverTypes(clusters []*watchedCluster, queries []query,
	screen *view.Screen) ([][]*meta.RESTMapping, error) {
	types, errs := make([][]*meta.RESTMapping, len(clusters)), make([]error, len(clusters))
	var asked sync.WaitGroup
	for i, c := range clusters {
		asked.Go(func() {
			late := time.AfterFunc(connectNote, func() {
				screen.Note(screen.NotePalette().Dim("asking " + c.target.Server +
					" for its types …"))
			})
			defer late.Stop()
			types[i], errs[i] = c.discover(queries)
			if errs[i] != nil && c.label != "" {
				errs[i] = fmt.Errorf("context %q: %w", c.label, errs[i])
			}
		})
	}
	asked.Wait()
	return types, errors.Join(errs...)
}

// chooseNamespaces sets the namespaces to watch: those of the flags, or the context's. A flag that
// names one for types without namespaces is an error of the command line.
func (c *watchedCluster) chooseNamespaces(command string, all bool, named []string,
	types []*meta.RESTMapping) error {
	namespace, err := c.cluster.namespace()
	if err != nil {
		return err
	}
	if len(named) > 0 && !slices.ContainsFunc(types, isNamespaced) {
		return problem.Usage(command, "%s have no namespace: leave out --namespace",
			types[0].Resource.Resource)
	}
	switch {
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
func (c *watchedCluster) addTypes(o watchOptions, types []*meta.RESTMapping,
	options tidings.FactoryOptions) (err error) {
	if c.factory, err = tidings.NewFactory(c.config, options); err != nil {
		return c.target.Explain(err)
	}
	for i, mapping := range types {
		kind := mapping.GroupVersionKind
		of := view.Type{Kind: kind, Singular: strings.ToLower(kind.Kind), Plural: mapping.Resource.Resource, Context: c.label}
		t := &watchedType{cluster: c, of: of, name: o.queries[i].name, namespaced: isNamespaced(mapping)}
		if slices.ContainsFunc(c.types,
			func(other *watchedType) bool { return other.of == t.of && other.name == t.name }) {
			continue // the same type by another of its names
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

// newWatcher returns a watcher of clusters with their types.
func newWatcher(screen *view.Screen, o watchOptions, secrecy view.Secrecy,
	clusters []*watchedCluster) *watcher {
	w := &watcher{o: o, clusters: clusters, began: time.Now()}
	var shown []view.Type
	count := 0
	for t := range w.types() {
		t.index = count
		count++
		if !slices.Contains(shown, t.of) {
			shown = append(shown, t.of)
		}
	}
	w.printer = newPrinter(screen, secrecy, shown)
	if o.output != "" {
		w.printer.render = view.NewDocuments(o.output, o.events).Render
	}
	if o.condition != nil {
		w.goal = until.NewGoal(*o.condition, count)
	}
	return w
}

// types yields the types of all clusters.
func (w *watcher) types() iter.Seq[*watchedType] {
	return func(yield func(*watchedType) bool) {
		for _, c := range w.clusters {
			for _, t := range c.types {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// run watches until the goal is reached, the time is over, or ctx ends.
func (w *watcher) run(ctx context.Context) error {
	err := w.start(ctx)
	switch {
	case err == nil:
		err = w.loop(ctx)
	case ctx.Err() != nil:
		err = w.o.interrupted()
	}
	if err == nil && w.recording != nil { // informers that stop leave nothing
		w.printer.screen.SetStatus("")
		err = w.writeRecording("the end of tidings record")
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var stopErr error
	for _, c := range w.clusters {
		stopErr = errors.Join(stopErr, c.factory.Shutdown(stopping))
	}
	w.printer.screen.SetStatus("")
	if err == nil {
		w.summarise()
		err = stopErr
	}
	return err
}

func (w *watcher) start(ctx context.Context) (err error) {
	for t := range w.types() {
		handler := view.Handler[*unstructured.Unstructured](t.of,
			func(c view.Change) { w.receive(t, c) })
		t.registration, err = t.informer.AddHandler(handler, tidings.HandlerOptions{Name: "print"})
		if err != nil {
			return err
		}
	}
	if w.recording != nil {
		ctx = context.WithoutCancel(ctx) // Ctrl-C ends the informers after they are written
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
	if w.recording == nil && (!c.Initial || w.o.initial) {
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

// loop checks the informers until there is a reason to end.
func (w *watcher) loop(ctx context.Context) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	var over <-chan time.Time
	if w.o.timeout > 0 {
		over = time.After(w.o.timeout)
	}
	var asked <-chan os.Signal
	if w.recording != nil {
		asked = w.recording.asked
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
		case s := <-asked:
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

// check prints the progress of the first lists, and then changes of the informers' states.
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

// arm lets the goal be reached once the handlers have received the initial objects.
func (w *watcher) arm() {
	if w.goal == nil || w.armed {
		return
	}
	for t := range w.types() {
		if !t.registration.HasSynced() {
			return
		}
	}
	w.armed = true
	w.goal.Arm()
	w.noteNoValue()
}

// explain says what to do about the error of an informer.
func (w *watcher) explain(t *watchedType, err error) error {
	target := t.cluster.target
	target.ClusterScoped = !t.namespaced
	return target.Explain(w.printer.secrecy.Error(err))
}
