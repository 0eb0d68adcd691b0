package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/tidingstest"
)

// ConfigMaps are the objects that most tests write: no controller does.
var ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// Options choose informers.
type Options struct {
	// Resource is the resource to follow. Only ConfigMaps have typed informers.
	Resource schema.GroupVersionResource
	// Namespaces adds informers of package tidings that follow these alone.
	Namespaces []string
	// PageSize is that of the informers that list in pages.
	PageSize int64
	// WatchTimeout is the shortest duration of a watch, which lasts up to twice as long; 0 is the
	// default. Otherwise only informers run that have this option.
	WatchTimeout time.Duration
}

// followers are those of one Start.
type followers struct {
	all  []*Follower
	ends []func()
}

// Start starts informers of every kind, which run until ctx ends; then wait returns once they
// have ended. With an error, the informers before it run.
func Start(
	ctx context.Context, config *rest.Config, o Options,
) (all []*Follower, wait func(), err error) {
	var s followers
	streamed := tidings.FactoryOptions{Transport: tidings.Transport{WatchTimeout: o.WatchTimeout}}
	paged := tidings.FactoryOptions{Transport: tidings.Transport{
		WatchTimeout: o.WatchTimeout, NoStreamedLists: true, PageSize: o.PageSize,
	}}
	err = errors.Join(s.natives(ctx, config, "streamed", o.Resource, streamed),
		s.natives(ctx, config, "paged", o.Resource, paged))
	if len(o.Namespaces) > 0 {
		some := tidings.FactoryOptions{Namespaces: o.Namespaces}
		name := fmt.Sprintf("in %d namespaces", len(o.Namespaces))
		err = errors.Join(err, s.natives(ctx, config, name, o.Resource, some))
	}
	if o.WatchTimeout == 0 {
		err = errors.Join(err, s.dropIns(ctx, config, o.Resource))
	}
	return s.all, func() {
		for _, end := range s.ends {
			end()
		}
	}, err
}

// natives starts the informers of package tidings.
func (s *followers) natives(
	ctx context.Context, config *rest.Config, how string, resource schema.GroupVersionResource,
	o tidings.FactoryOptions,
) error {
	factory, err := tidings.NewFactory(config, o)
	if err != nil {
		return err
	}
	if resource == ConfigMaps {
		i, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		if err := addNative(s, "typed, "+how, o.Namespaces, i, err); err != nil {
			return err
		}
	}
	unstructured, err := tidings.Dynamic(factory, resource, tidings.Selection{})
	if err := addNative(s, "dynamic, "+how, o.Namespaces, unstructured, err); err != nil {
		return err
	}
	onlyMetadata, err := tidings.Metadata(factory, resource, tidings.Selection{})
	if err := addNative(s, "metadata, "+how, o.Namespaces, onlyMetadata, err); err != nil {
		return err
	}
	s.ends = append(s.ends, func() {
		factory.Shutdown(context.WithoutCancel(ctx)) //nolint:errcheck // the handlers do not block
	})
	return factory.Start(ctx)
}

func addNative[T tidings.Object](
	s *followers, name string, namespaces []string, i *tidings.Informer[T], err error,
) error {
	if err != nil {
		return err
	}
	informer, err := tidingstest.Native(i, byName)
	return s.follow(informer, err,
		&Follower{Name: name, Namespaces: namespaces, add: i.AddNamespace, remove: i.RemoveNamespace})
}

// byName is an index that no test asks.
func byName(obj tidings.Object) ([]string, error) { return []string{obj.GetName()}, nil }

// follow adds a follower of an informer.
func (s *followers) follow(informer tidingstest.Informer, err error, f *Follower) error {
	if err != nil {
		return err
	}
	f.Informer = informer
	s.all = append(s.all, f)
	_, err = informer.AddHandler(func(e tidingstest.Event) { f.handler.Handle(follow.EventOf(e)) },
		tidings.HandlerOptions{})
	return err
}

// dropIns starts the informers of the packages that replace client-go's.
func (s *followers) dropIns(
	ctx context.Context, config *rest.Config, resource schema.GroupVersionResource,
) error {
	client, err1 := kubernetes.NewForConfig(config)
	dynamicClient, err2 := dynamic.NewForConfig(config)
	metadataClient, err3 := metadata.NewForConfig(config)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	typed := informers.NewSharedInformerFactory(client, 0)
	unstructured := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	onlyMetadata := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	var err error
	if resource == ConfigMaps {
		err = s.addDropIn("clientgo typed", typed.Core().V1().ConfigMaps().Informer())
	}
	err = errors.Join(err,
		s.addDropIn("clientgo dynamic", unstructured.ForResource(resource).Informer()),
		s.addDropIn("clientgo metadata", onlyMetadata.ForResource(resource).Informer()))
	for _, factory := range []interface {
		Start(stop <-chan struct{})
		Shutdown()
	}{typed, unstructured, onlyMetadata} {
		factory.Start(ctx.Done())
		s.ends = append(s.ends, factory.Shutdown)
	}
	return err
}

func (s *followers) addDropIn(name string, i cache.SharedIndexInformer) error {
	informer, err := tidingstest.Shared(i, byName)
	return s.follow(informer, err, &Follower{Name: name})
}
