package listwatch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Client lists and watches one resource. Make one with [ClientOf].
type Client interface {
	List(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// ClientOf returns c, a typed client of client-go whose lists have the type L, as a Client.
func ClientOf[L runtime.Object](c lister[L]) Client { return client[L]{c} }

type lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

type client[L runtime.Object] struct{ lister[L] }

func (c client[L]) List(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := c.lister.List(ctx, o)
	if err != nil {
		return nil, err // without the list: a nil pointer in an interface is not nil
	}
	return list, nil
}

// FromClient returns a ListerWatcher that calls open for a client at each list and watch. tweak
// changes the options first; nil leaves them. set is the client of all resources, which
// declares whether it can stream lists.
func FromClient(set any, open func() (Client, error),
	tweak func(*metav1.ListOptions)) cache.ListerWatcher {
	ready := func(o *metav1.ListOptions) (Client, error) {
		c, err := open()
		if err == nil && tweak != nil {
			tweak(o)
		}
		return c, err
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			c, err := ready(&o)
			if err != nil {
				return nil, err
			}
			return c.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			c, err := ready(&o)
			if err != nil {
				return nil, err
			}
			return c.Watch(ctx, o)
		},
	}, set)
}
