package contract_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// The tests of the root run over HTTP against apisim, in a bubble, for typed, dynamic and
// metadata informers. They test properties that package tidingstest cannot test for every kind of
// informer on every server.

// probe is an informer of any kind.
type probe interface {
	handle(f func(event), o tidings.HandlerOptions) *tidings.Registration
	state() map[string]string // the states of the cache, by key
	get(key string) string    // a state, "" if there is none
	indexed(value string) []string
	snapshot() func() (version string, state map[string]string)
	informer() informer
	add() error // a handler that does nothing
	// meddle writes to shared objects: in a handler of that name, or at once.
	meddle(handler string)
}

// informer has the methods of an Informer that need no type parameter.
type informer interface {
	Name() string
	Run(context.Context) error
	Health() tidings.Health
	HasSynced() bool
	WaitForSync(context.Context) error
	WaitFor(context.Context, string) error
	AddNamespace(string) error
	RemoveNamespace(string) error
	Namespaces() []string
	Release()
}

type event = follow.Event

func label(state string) string { return follow.Label(state) }

func version(state string) string { return follow.Version(state) }

// ignore returns a handler that does nothing.
func ignore[T tidings.Object]() tidings.Handler[T] {
	return tidings.HandlerFunc[T](func(tidings.Event[T]) {})
}

type typedProbe[T tidings.Object] struct {
	t     *testing.T
	i     *tidings.Informer[T]
	index *tidings.Index[T]
}

// indexByN is the index that every probe has.
const indexByN = "n"

func newProbe[T tidings.Object](t *testing.T, i *tidings.Informer[T], err error) probe {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	index := tidings.NewIndex(indexByN, func(obj T) []string {
		n := obj.GetLabels()["n"]
		if n == "unindexable" || n == "unbearable" {
			panic("I do not index these")
		}
		return []string{n}
	})
	if err = i.AddIndex(index); err != nil {
		t.Fatal(err)
	}
	return typedProbe[T]{t, i, index}
}

func (p typedProbe[T]) handle(f func(event), o tidings.HandlerOptions) *tidings.Registration {
	p.t.Helper()
	handler := tidings.HandlerFunc[T](func(e tidings.Event[T]) { f(follow.EventOf(e)) })
	r, err := p.i.AddHandler(handler, o)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p typedProbe[T]) state() map[string]string {
	state := map[string]string{}
	for key, obj := range p.i.Lister().All() {
		state[key] = follow.StateOf(obj)
	}
	return state
}

func (p typedProbe[T]) get(key string) string {
	obj, err := p.i.Lister().Get(key)
	if err != nil {
		return ""
	}
	return follow.StateOf(obj)
}

func (p typedProbe[T]) indexed(value string) []string {
	var keys []string
	for key := range p.i.Lister().ByIndex(p.index, value) {
		keys = append(keys, key)
	}
	return keys
}

func (p typedProbe[T]) snapshot() func() (string, map[string]string) {
	s := p.i.Lister().Snapshot()
	return func() (string, map[string]string) {
		state := map[string]string{}
		for key, obj := range s.All() {
			state[key] = follow.StateOf(obj)
		}
		return s.Version(), state
	}
}

func (p typedProbe[T]) informer() informer { return p.i }

func (p typedProbe[T]) add() error {
	_, err := p.i.AddHandler(ignore[T](), tidings.HandlerOptions{})
	return err
}

func (p typedProbe[T]) meddle(handler string) {
	if handler == "" {
		for _, obj := range p.i.Lister().All() {
			write(obj)
		}
		return
	}
	_, err := p.i.AddHandler(tidings.HandlerFunc[T](func(e tidings.Event[T]) {
		write(e.New)
	}), tidings.HandlerOptions{Name: handler})
	if err != nil {
		p.t.Fatal(err)
	}
}

// write writes to a shared object.
func write(object any) {
	switch object := object.(type) {
	case *configMapView:
		object.Annotations = map[string]string{"mine": "now"}
	case metav1.Object:
		object.SetAnnotations(map[string]string{"mine": "now"})
	}
}

// configMapView is a view of config maps, with more metadata than each view has.
type configMapView struct {
	ViewMeta `json:"metadata"`
	Data     map[string]string `json:"data"`
}

type ViewMeta struct {
	tidings.Meta `json:",inline"`
	Annotations  map[string]string `json:"annotations"`
}

// askFor is a kind of informer.
type askFor func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe

var kinds = map[string]askFor{
	"typed": func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
		i, err := tidings.For[*corev1.ConfigMap](f, s)
		return newProbe(t, i, err)
	},
	"dynamic": func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
		i, err := tidings.Dynamic(f, configMaps, s)
		return newProbe(t, i, err)
	},
	"metadata": func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
		i, err := tidings.Metadata(f, configMaps, s)
		return newProbe(t, i, err)
	},
	"view": func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
		s.Drop = nil // a view has no managed fields
		i, err := tidings.View[*configMapView, *corev1.ConfigMap](f, s)
		return newProbe(t, i, err)
	},
	"unchecked view": func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
		s.Drop = nil
		i, err := tidings.UncheckedView[*configMapView](f, corev1.SchemeGroupVersion.WithKind("ConfigMap"), s)
		return newProbe(t, i, err)
	},
}
