package cache_test

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	theirdynamic "k8s.io/client-go/dynamic/dynamicinformer"
	theirinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	theirmetadata "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	follower "github.com/tidings-go/tidings/internal/test/follow"
)

// wireKind is a way to read objects: client-go's, that of the drop-in, and a native one.
type wireKind struct {
	name        string
	contentType string
	object      string // the beginning of an object in JSON, up to its metadata
	theirs      func(*rest.Config) (clientgo.SharedIndexInformer, error)
	ours        func(*rest.Config) (clientgo.SharedIndexInformer, error)
	native      func(*testing.T, *rest.Config) *wired
}

const (
	protobuf    = "application/vnd.kubernetes.protobuf"
	configMapIs = `{"kind":"ConfigMap","apiVersion":"v1",`
	metadataIs  = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`
	asJSON      = "application/json"
	ofProgram   = "a ListerWatcher" // its client is client-go's
)

var wireKinds = []wireKind{
	{"typed, protobuf", protobuf, configMapIs, theirTyped, ourTyped,
		native(tidings.FactoryOptions{}, tidings.For[*corev1.ConfigMap])},
	{"typed, JSON", asJSON, configMapIs, theirTyped, ourTyped,
		native(tidings.FactoryOptions{Scheme: ownScheme()}, tidings.For[*ownMap])},
	{"dynamic", asJSON, configMapIs, ofClient(dynamic.NewForConfig,
		func(client *dynamic.DynamicClient) clientgo.SharedIndexInformer {
			return theirdynamic.NewFilteredDynamicInformer(client, configMaps, "", 0,
				clientgo.Indexers{}, nil).Informer()
		}), ofClient(func(c *rest.Config) (dynamic.Interface, error) {
		return dynamicinformer.NewClient(c, nil)
	}, func(client dynamic.Interface) clientgo.SharedIndexInformer {
		return dynamicinformer.NewFilteredDynamicInformer(client, configMaps, "", 0,
			clientgo.Indexers{}, nil).Informer()
	}), native(tidings.FactoryOptions{}, ofConfigMaps(tidings.Dynamic))},
	{"metadata", asJSON, metadataIs, ofClient(metadata.NewForConfig,
		func(client metadata.Interface) clientgo.SharedIndexInformer {
			return theirmetadata.NewFilteredMetadataInformer(client, configMaps, "", 0,
				clientgo.Indexers{}, nil).Informer()
		}), ofClient(func(c *rest.Config) (metadata.Interface, error) {
		return metadatainformer.NewClient(c, nil)
	}, func(client metadata.Interface) clientgo.SharedIndexInformer {
		return metadatainformer.NewFilteredMetadataInformer(client, configMaps, "", 0,
			clientgo.Indexers{}, nil).Informer()
	}), native(tidings.FactoryOptions{}, ofConfigMaps(tidings.Metadata))},
	{ofProgram, protobuf, configMapIs,
		listerWatcherWith(clientgo.NewSharedIndexInformerWithOptions),
		listerWatcherWith(cache.NewSharedIndexInformerWithOptions),
		native(tidings.FactoryOptions{Transport: tidings.Transport{
			NoStreamedLists: true, PageSize: 2, ConsistentFirstList: true,
		}}, tidings.For[*corev1.ConfigMap])},
}

// ofClient makes an informer on a client.
func ofClient[C any](
	newClient func(*rest.Config) (C, error), newInformer func(C) clientgo.SharedIndexInformer,
) func(*rest.Config) (clientgo.SharedIndexInformer, error) {
	return func(c *rest.Config) (clientgo.SharedIndexInformer, error) {
		client, err := newClient(c)
		if err != nil {
			return nil, err
		}
		return newInformer(client), nil
	}
}

var theirTyped = ofClient(kubernetes.NewForConfig,
	func(client *kubernetes.Clientset) clientgo.SharedIndexInformer {
		return theirinformers.NewConfigMapInformer(client, "", 0, clientgo.Indexers{})
	})

var ourTyped = ofClient(kubernetes.NewForConfig,
	func(client *kubernetes.Clientset) clientgo.SharedIndexInformer {
		return informers.NewFilteredFor[*corev1.ConfigMap](client, "", 0, clientgo.Indexers{}, nil)
	})

func listerWatcherWith(newInformer func(
	clientgo.ListerWatcher, runtime.Object, clientgo.SharedIndexInformerOptions,
) clientgo.SharedIndexInformer) func(*rest.Config) (clientgo.SharedIndexInformer, error) {
	return ofClient(kubernetes.NewForConfig,
		func(client *kubernetes.Clientset) clientgo.SharedIndexInformer {
			maps := client.CoreV1().ConfigMaps("")
			return newInformer(&clientgo.ListWatch{
				ListWithContextFunc: func(
					ctx context.Context, o metav1.ListOptions,
				) (runtime.Object, error) {
					return maps.List(ctx, o)
				},
				WatchFuncWithContext: maps.Watch,
			}, &corev1.ConfigMap{}, noOptions)
		})
}

// ownMap is a Go type of a program's own, which has no protobuf.
type ownMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data"`
}

func (m *ownMap) DeepCopyObject() runtime.Object {
	return &ownMap{m.TypeMeta, *m.ObjectMeta.DeepCopy(), maps.Clone(m.Data)}
}

func ownScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &ownMap{})
	return scheme
}

// ofConfigMaps asks for an informer of the config maps.
func ofConfigMaps[T tidings.Object](ask func(
	*tidings.Factory, schema.GroupVersionResource, tidings.Selection,
) (*tidings.Informer[T], error)) func(
	*tidings.Factory, tidings.Selection,
) (*tidings.Informer[T], error) {
	return func(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[T], error) {
		return ask(f, configMaps, s)
	}
}

// wired is one of the informers on a wire.
type wired struct {
	name    string
	objects func() []any
	// held has the states that the events of a handler add up to, by key, as state describes
	// them; wrong the events that do not follow from those before.
	held   func() map[string]string
	wrong  func() []string
	state  func(any) string
	rewind func() // allows events that go back to older states; nil if they need no leave
	health func() any

	recovered time.Duration // the time after the server turned honest; negative is never
	requests  int           // while it was hostile
}

// cached returns the states of the cache.
func (w *wired) cached(state func(any) string) map[string]string {
	states := map[string]string{}
	for _, obj := range w.objects() {
		states[keyOf(obj)] = state(obj)
	}
	return states
}

// shared runs an informer of client-go's type until the end of the test.
func shared(
	t *testing.T, c *rest.Config, open func(*rest.Config) (clientgo.SharedIndexInformer, error),
) *wired {
	informer, err := open(c)
	must(t, err)
	handler := &recorder{state: stateOf}
	addHandler(t, informer, handler)
	run(t, informer)
	return &wired{
		objects: informer.GetStore().List,
		held: func() map[string]string {
			held, _ := handler.story()
			return held
		},
		wrong: func() []string {
			_, wrong := handler.story()
			return wrong
		},
		state: stateOf,
		health: func() any {
			health, _ := cache.HealthOf(informer)
			return health
		},
	}
}

// native runs informers of package tidings until the end of the test.
func native[T tidings.Object](
	o tidings.FactoryOptions,
	ask func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error),
) func(*testing.T, *rest.Config) *wired {
	return func(t *testing.T, c *rest.Config) *wired {
		o := o
		o.Logger = slog.New(slog.DiscardHandler)
		factory, err := tidings.NewFactory(c, o)
		must(t, err)
		informer, err := ask(factory, tidings.Selection{})
		must(t, err)
		handler := &follower.Follower{}
		_, err = informer.AddHandler(tidings.HandlerFunc[T](func(e tidings.Event[T]) {
			handler.Handle(follower.EventOf(e))
		}), tidings.HandlerOptions{})
		must(t, err)
		must(t, factory.Start(t.Context()))
		t.Cleanup(func() { must(t, factory.Shutdown(context.Background())) })
		return &wired{
			objects: func() (list []any) {
				for _, obj := range informer.Lister().All() {
					list = append(list, obj)
				}
				return list
			},
			held: handler.Held, wrong: handler.Wrong,
			rewind: func() { handler.Rewind(true) },
			state:  func(obj any) string { return follower.StateOf(obj.(tidings.Object)) },
			health: func() any { return informer.Health() },
		}
	}
}
