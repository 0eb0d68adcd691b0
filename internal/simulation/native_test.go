package simulation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
)

// Frames and lists that an Inflate makes larger than this are refused.
const (
	nativeFrameLimit = 8 << 10
	nativeListLimit  = 32 << 10
)

// nativeOptions choose how an informer of the native API lists and watches.
func nativeOptions(w *world) tidings.FactoryOptions {
	return tidings.FactoryOptions{Transport: tidings.Transport{
		NoStreamedLists: w.random.IntN(3) == 0, PageSize: int64(1 + w.random.IntN(6)),
		WatchTimeout:  w.between(150, 300),
		MaxFrameBytes: nativeFrameLimit, MaxListBytes: nativeListLimit,
	}}
}

// nativeInformer is one of the native API with a factory of its own.
type nativeInformer[T tidings.Object] struct {
	w       *world
	factory *tidings.Factory
	ask     func() (*tidings.Informer[T], error)
	index   *tidings.Index[T]
	i       *tidings.Informer[T]
	cancel  context.CancelFunc
}

// native returns what starts an informer of the native API.
func native[T tidings.Object](ask func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error)) func(*world, *subject) informer {
	return func(w *world, s *subject) informer {
		factory, err := tidings.NewFactory(w.config(s.kind), nativeOptions(w))
		if err != nil {
			w.Fatal(err)
		}
		selection := tidings.Selection{Namespaces: s.scope.namespaces}
		if s.scope.hides {
			selection.Labels = "n!=" + hidden
		}
		if s.scope.name != "" {
			selection.Fields = "metadata.name=" + s.scope.name
		}
		if s.code != nil {
			selection.Transform = tidings.NewTransform(transform[T](s.code))
		}
		index := tidings.NewIndex(indexByN, func(obj T) []string {
			values, err := s.code.index(obj)
			if err != nil {
				panic(err)
			}
			return values
		})
		i := &nativeInformer[T]{w: w, factory: factory, index: index, ask: func() (*tidings.Informer[T], error) { return ask(factory, selection) }}
		i.begin()
		return i
	}
}

// begin asks the factory and starts it.
func (i *nativeInformer[T]) begin() {
	i.w.Helper()
	var err error
	if i.i, err = i.ask(); err != nil {
		i.w.Fatal(err)
	}
	if err := i.i.AddIndex(i.index); err != nil {
		i.w.Fatal(err)
	}
	var ctx context.Context
	ctx, i.cancel = context.WithCancel(context.Background())
	if err := i.factory.Start(ctx); err != nil {
		i.w.Fatal(err)
	}
}

// nextTerm ends the informer and starts the factory anew, as a leader does that is
// elected again.
func (i *nativeInformer[T]) nextTerm() informer {
	i.w.Helper()
	i.cancel()
	if i.w.random.IntN(2) == 0 {
		i.i.Release()
	}
	next := *i
	next.begin()
	return &next
}

func (i *nativeInformer[T]) handle(f func(event), o handlerOptions) registration {
	r, err := i.i.AddHandler(tidings.HandlerFunc[T](func(e tidings.Event[T]) {
		received := event{kind: e.Type, resync: e.Resync, tombstone: e.Tombstone, key: e.Key()}
		if e.Type != tidings.Added {
			received.old = stateOf(e.Old)
		}
		if e.Type != tidings.Deleted {
			received.new = stateOf(e.New)
		}
		f(received)
	}), tidings.HandlerOptions{Name: o.name, Policy: o.policy, Limit: o.limit, Resync: o.resync, IsolatePanics: true})
	if err != nil {
		i.w.Fatal(err)
	}
	return registration{r.Remove, r.HasSynced, r.Health}
}

func (i *nativeInformer[T]) state() map[string]state {
	all := map[string]state{}
	for key, obj := range i.i.Lister().All() {
		all[key] = stateOf(obj)
	}
	return all
}

func (i *nativeInformer[T]) indexed(n string) []string {
	var keys []string
	for key := range i.i.Lister().ByIndex(i.index, n) {
		keys = append(keys, key)
	}
	return keys
}

func (i *nativeInformer[T]) health() tidings.Health { return i.i.Health() }

func (i *nativeInformer[T]) stop() error {
	i.cancel()
	return i.factory.Shutdown(context.Background())
}

func newTyped(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[*corev1.ConfigMap], error) {
	return tidings.For[*corev1.ConfigMap](f, s)
}

func newDynamic(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[*unstructured.Unstructured], error) {
	return tidings.Dynamic(f, widgets, s)
}

func newMetadata(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[*metav1.PartialObjectMetadata], error) {
	return tidings.Metadata(f, configMaps, s)
}
