package stack

import (
	"context"
	"errors"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/internal/decode/dedup"
)

// Native is Tidings by its own API.
func Native() Stack {
	return Stack{
		Name:       "native",
		FromMemory: nativeFromMemory, FromServer: NativeWith("", Eyes{}).FromServer,
		Decoder: nativeDecoder,
	}
}

func nativeFromMemory(f *feed.Feed, o Options) (Informer, error) {
	// These objects share their equal parts already: see DropIn.
	informer, err := tidings.NewInformer(f, tidings.InformerOptions[*corev1.Pod]{
		Name: "pods", Transport: tidings.Transport{Sharing: tidings.ShareNothing},
	})
	if err != nil {
		return nil, err
	}
	return newNative(informer, informer.Run, o)
}

func nativeFromServer(t Target, o Options, e Eyes) (Informer, error) {
	if o.ListerWatcher {
		return nil, errors.New("stack: the native API has no ListerWatcher")
	}
	config := &rest.Config{Host: t.URL, QPS: -1}
	transport := tidings.Transport{NoStreamedLists: t.Paged}
	if err := e.record(&transport); err != nil {
		return nil, err
	}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{
		Scheme: objects.Scheme(), Transport: transport,
	})
	if err != nil {
		return nil, err
	}
	switch t.Kind {
	case objects.Pods, objects.UnlikePods:
		return fromFactory[*corev1.Pod](factory, o, e)
	case objects.Deployments:
		return fromFactory[*appsv1.Deployment](factory, o, e)
	case objects.ConfigMaps:
		return fromFactory[*corev1.ConfigMap](factory, o, e)
	case objects.Databases, objects.UnlikeDatabases:
		return fromFactory[*objects.Database[[0]byte]](factory, o, e)
	case objects.Widgets:
		informer, err := tidings.Dynamic(factory, t.Kind.Resource(), tidings.Selection{})
		if err != nil {
			return nil, err
		}
		return newNative(informer, runFactory(factory, e), o)
	}
	return nil, errUnsupported(t.Kind)
}

func nativeDecoder() func([]byte) (tidings.Object, error) {
	decoder := dedup.NewDecoder(new(dedup.Table), &corev1.Pod{}, dedup.ShareAll)
	return func(message []byte) (tidings.Object, error) {
		pod := &corev1.Pod{}
		return pod, decoder.Unmarshal(message, pod)
	}
}

func fromFactory[T objects.Object](factory *tidings.Factory, o Options, e Eyes) (Informer, error) {
	informer, err := tidings.For[T](factory, tidings.Selection{Slots: o.Slots})
	if err != nil {
		return nil, err
	}
	return newNative(informer, runFactory(factory, e), o)
}

// runFactory runs the informers of a factory, which are looked at, until the context ends.
func runFactory(f *tidings.Factory, e Eyes) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := e.look(ctx, f); err != nil {
			return err
		}
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
	lister   tidings.Lister[T]
	indexes  map[string]*tidings.Index[T]
	synced   []<-chan struct{}
}

func newNative[T tidings.Object](
	informer *tidings.Informer[T], run func(context.Context) error, o Options,
) (Informer, error) {
	indexes := make(map[string]*tidings.Index[T])
	for name, index := range o.Indexes {
		indexes[name] = tidings.NewIndex(name, func(object T) []string { return index(object) })
		if err := informer.AddIndex(indexes[name]); err != nil {
			return nil, err
		}
	}
	if len(o.Labels) > 0 {
		if err := informer.IndexLabels(o.Labels...); err != nil {
			return nil, err
		}
	}
	if o.Owners {
		if err := informer.IndexOwners(); err != nil {
			return nil, err
		}
	}
	synced := []<-chan struct{}{informer.Synced()}
	return &nativeInformer[T]{informer, run, informer.Lister(), indexes, synced}, nil
}

func (i *nativeInformer[T]) AddHandler(h Handler, policy tidings.Policy) error {
	r, err := i.informer.AddHandler(tidings.Funcs[T]{
		OnAdd:    func(object T, _ bool) { h(Added, nil, object) },
		OnUpdate: func(before, after T) { h(Updated, before, after) },
		OnDelete: func(object T) { h(Deleted, nil, object) },
	}, tidings.HandlerOptions{Policy: policy})
	if err != nil {
		return err
	}
	i.synced = append(i.synced, r.Synced())
	return nil
}

func (i *nativeInformer[T]) Run(ctx context.Context) error { return i.run(ctx) }

func (i *nativeInformer[T]) WaitForSync(ctx context.Context) error { return waitAll(ctx, i.synced) }

func (i *nativeInformer[T]) Len() int { return i.lister.Len() }

func (i *nativeInformer[T]) Get(key string) (tidings.Object, bool) {
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
	return count(i.lister.ByIndex(i.indexes[index], value))
}

func (i *nativeInformer[T]) All() int { return count(i.lister.All()) }

func count[T tidings.Object](found iter.Seq2[string, T]) int {
	n := 0
	for _, object := range found {
		n += visit(object)
	}
	return n
}
