package stack

import (
	"context"
	"errors"
	"fmt"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/internal/dedup"
)

// native is Tidings by its own API.
type native struct{}

func (native) Name() string { return Native }

func (native) Policies() []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.String())
	}
	return names
}

// policies are those under which a stuck handler does not hold up the others.
var policies = []tidings.Policy{tidings.ConflateUpdates, tidings.ConflateState, tidings.Unbounded}

// LeavesOut reports whether a handler of a policy may not be told of objects that came
// and went.
func LeavesOut(policy string) bool { return policy == tidings.ConflateState.String() }

func (native) FromMemory(f *feed.Feed, o Options) (Informer, error) {
	// Nothing has decoded these objects: see fromMemory.
	informer, err := tidings.NewInformer(f, tidings.InformerOptions[*corev1.Pod]{Name: "pods", Sharing: tidings.ShareNothing})
	if err != nil {
		return nil, err
	}
	return newNative(informer, informer.Run, o)
}

func (native) FromServer(t Target, o Options) (Informer, error) {
	if o.ListerWatcher {
		return nil, errors.New("stack: the native API reads from a server by itself")
	}
	factory, err := tidings.NewFactory(&rest.Config{Host: t.URL, QPS: -1}, tidings.FactoryOptions{NoStreamedLists: t.Way == server.Paged})
	if err != nil {
		return nil, err
	}
	switch t.Kind {
	case objects.Pods, objects.UnlikePods:
		return fromFactory[*corev1.Pod](factory, tidings.For, o)
	case objects.Deployments:
		return fromFactory[*appsv1.Deployment](factory, tidings.For, o)
	case objects.ConfigMaps:
		return fromFactory[*corev1.ConfigMap](factory, tidings.For, o)
	case objects.Widgets:
		informer, err := tidings.Dynamic(factory, t.Kind.Resource(), tidings.Selection{})
		if err != nil {
			return nil, err
		}
		return newNative(informer, runFactory(factory), o)
	}
	return nil, unsupported(t.Kind)
}

func (native) Decoder() func([]byte) (metav1.Object, error) {
	decoder := dedup.NewDecoder(new(dedup.Table), &corev1.Pod{}, dedup.ShareAll)
	return func(message []byte) (metav1.Object, error) {
		pod := &corev1.Pod{}
		return pod, decoder.Unmarshal(message, pod)
	}
}

func fromFactory[T tidings.Object](factory *tidings.Factory, ask func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error), o Options) (Informer, error) {
	informer, err := ask(factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	return newNative(informer, runFactory(factory), o)
}

// runFactory runs the informers of a factory until the context ends.
func runFactory(f *tidings.Factory) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := f.Start(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return f.Shutdown(context.WithoutCancel(ctx))
	}
}

// nativeInformer is an Informer on a tidings.Informer.
type nativeInformer[T tidings.Object] struct {
	informer *tidings.Informer[T]
	run      func(context.Context) error
	handlers []*tidings.Registration
	lister   tidings.Lister[T]
}

func newNative[T tidings.Object](informer *tidings.Informer[T], run func(context.Context) error, o Options) (Informer, error) {
	for name, index := range o.Indexes {
		if err := informer.AddIndex(name, func(object T) ([]string, error) { return index(object), nil }); err != nil {
			return nil, err
		}
	}
	if err := informer.IndexLabels(o.Labels...); err != nil {
		return nil, err
	}
	if o.Owners {
		if err := informer.IndexOwners(); err != nil {
			return nil, err
		}
	}
	return &nativeInformer[T]{informer: informer, run: run, lister: informer.Lister()}, nil
}

func (i *nativeInformer[T]) AddHandler(h Handler) error {
	var funcs tidings.Funcs[T]
	if h.Add != nil {
		funcs.OnAdd = func(object T, _ bool) { h.Add(object) }
	}
	if h.Update != nil {
		funcs.OnUpdate = func(before, after T) { h.Update(before, after) }
	}
	if h.Delete != nil {
		funcs.OnDelete = func(object T) { h.Delete(object) }
	}
	var o tidings.HandlerOptions
	known := h.Policy == ""
	for _, p := range policies {
		if p.String() == h.Policy {
			o.Policy, known = p, true
		}
	}
	if !known {
		return fmt.Errorf("stack: %s has no policy %q", Native, h.Policy)
	}
	r, err := i.informer.AddHandler(funcs, o)
	i.handlers = append(i.handlers, r)
	return err
}

func (i *nativeInformer[T]) Run(ctx context.Context) error { return i.run(ctx) }

func (i *nativeInformer[T]) WaitForSync(ctx context.Context) error {
	// The informer is run by another goroutine, perhaps later: its channels may be
	// waited for before.
	waits := []<-chan struct{}{i.informer.Synced()}
	for _, h := range i.handlers {
		waits = append(waits, h.Synced())
	}
	return waitAll(ctx, waits)
}

func (i *nativeInformer[T]) Len() int { return i.lister.Len() }

func (i *nativeInformer[T]) Get(key string) (metav1.Object, bool) {
	object, err := i.lister.Get(key)
	return object, err == nil
}

func (i *nativeInformer[T]) Namespace(namespace string) int {
	return count(i.lister.Namespace(namespace).All())
}

func (i *nativeInformer[T]) Select(selector labels.Selector) int {
	return count(i.lister.Select(selector))
}

func (i *nativeInformer[T]) Owned(namespace, uid string) int {
	return count(i.lister.Namespace(namespace).Controlled(types.UID(uid)))
}

func (i *nativeInformer[T]) Lookup(index, value string) int {
	found, err := i.lister.ByIndex(index, value)
	if err != nil {
		return -1
	}
	return count(found)
}

func (i *nativeInformer[T]) All() int { return count(i.lister.All()) }

func count[T tidings.Object](found iter.Seq2[string, T]) int {
	n := 0
	for _, object := range found {
		n += visit(object)
	}
	return n
}

// waitAll waits until all channels are closed.
func waitAll(ctx context.Context, waits []<-chan struct{}) error {
	for _, wait := range waits {
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("stack: wait for sync: %w", context.Cause(ctx))
		}
	}
	return nil
}
