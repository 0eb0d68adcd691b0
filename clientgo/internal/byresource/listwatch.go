package byresource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Lister has the two methods of a client for one resource that an informer needs. L is
// the type of its lists.
type Lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// ListWatch lists and watches with what open returns, which is asked at every call and
// whose error is that of the call. tweak changes the options first; nil leaves them.
// client says whether lists can be streamed.
func ListWatch[L runtime.Object](client any, open func() (Lister[L], error), tweak func(*metav1.ListOptions)) cache.ListerWatcher {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		from, err := open()
		if err != nil {
			return nil, err
		}
		if tweak != nil {
			tweak(&o)
		}
		l, err := from.List(ctx, o)
		if err != nil {
			return nil, err // not the list: a nil pointer in an interface is not nil
		}
		return l, nil
	}
	begin := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		from, err := open()
		if err != nil {
			return nil, err
		}
		if tweak != nil {
			tweak(&o)
		}
		return from.Watch(ctx, o)
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  list,
		WatchFuncWithContext: begin,
	}, client)
}
