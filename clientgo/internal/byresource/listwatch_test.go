package byresource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/clientgo/internal/byresource"
)

// lister answers as it is told and remembers what it was asked.
type lister struct {
	list  *metav1.PartialObjectMetadataList
	watch watch.Interface
	err   error
	asked []metav1.ListOptions
	ctx   context.Context
}

func (l *lister) List(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	l.ctx, l.asked = ctx, append(l.asked, o)
	return l.list, l.err
}

func (l *lister) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	l.ctx, l.asked = ctx, append(l.asked, o)
	return l.watch, l.err
}

// calls are the four ways to list or watch, the two deprecated ones among them.
var calls = map[string]func(ctx context.Context, lw cache.ListerWatcher) (any, error){
	//lint:ignore SA1019 wrappers that programs wrote for client-go call it
	"List": func(_ context.Context, lw cache.ListerWatcher) (any, error) { return lw.List(asked) },
	//lint:ignore SA1019 wrappers that programs wrote for client-go call it
	"Watch": func(_ context.Context, lw cache.ListerWatcher) (any, error) { return lw.Watch(asked) },
	"ListWithContext": func(ctx context.Context, lw cache.ListerWatcher) (any, error) {
		return lw.(cache.ListerWithContext).ListWithContext(ctx, asked)
	},
	"WatchWithContext": func(ctx context.Context, lw cache.ListerWatcher) (any, error) {
		return lw.(cache.WatcherWithContext).WatchWithContext(ctx, asked)
	},
}

var asked = metav1.ListOptions{ResourceVersion: "7"}

func TestListWatchCalls(t *testing.T) {
	type key struct{}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			l := &lister{list: &metav1.PartialObjectMetadataList{}, watch: watch.NewFake()}
			open := func() (byresource.Lister[*metav1.PartialObjectMetadataList], error) { return l, nil }
			lw := byresource.ListWatch(nil, open, func(o *metav1.ListOptions) { o.LabelSelector = "color=red" })
			got, err := call(context.WithValue(t.Context(), key{}, "caller's"), lw)
			if err != nil || got != any(l.list) && got != any(l.watch) {
				t.Errorf("%v, %v; want what the lister returns", got, err)
			}
			if want := (metav1.ListOptions{ResourceVersion: "7", LabelSelector: "color=red"}); len(l.asked) != 1 || l.asked[0].String() != want.String() {
				t.Errorf("the lister is asked for %v, want %v", l.asked, want)
			}
			if passed, has := l.ctx.Value(key{}) != nil, strings.HasSuffix(name, "Context"); passed != has {
				t.Errorf("the lister has the caller's context: %t, want %t", passed, has)
			}

			l.asked = nil
			if _, err := call(t.Context(), byresource.ListWatch(nil, open, nil)); err != nil || l.asked[0].String() != asked.String() {
				t.Errorf("without tweak, the lister is asked for %v (%v), want %v", l.asked, err, asked)
			}
		})
	}
}

// TestListWatchErrors has the lister fail, and there be none. A failed List of a client
// returns a nil pointer, which must not pass for a list.
func TestListWatchErrors(t *testing.T) {
	refused, none := errors.New("refused"), errors.New("no lister")
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			got, err := call(t.Context(), byresource.ListWatch(nil, func() (byresource.Lister[*metav1.PartialObjectMetadataList], error) {
				return &lister{err: refused}, nil
			}, nil))
			checkFailure(t, got, err, refused)
			got, err = call(t.Context(), byresource.ListWatch(nil, func() (byresource.Lister[*metav1.PartialObjectMetadataList], error) {
				return nil, none
			}, nil))
			checkFailure(t, got, err, none)
		})
	}
}

func checkFailure(t *testing.T, got any, err, want error) {
	t.Helper()
	if list, ok := got.(runtime.Object); ok {
		t.Errorf("it returns the list %#v beside an error", list)
	}
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// unstreaming says that it cannot stream lists.
type unstreaming struct{}

func (unstreaming) IsWatchListSemanticsUnSupported() bool { return true }

func TestListWatchAsksClient(t *testing.T) {
	for client, want := range map[any]bool{unstreaming{}: true, struct{}{}: false, nil: false} {
		open := func() (byresource.Lister[*metav1.PartialObjectMetadataList], error) { return &lister{}, nil }
		if got := watchlist.DoesClientNotSupportWatchListSemantics(byresource.ListWatch(client, open, nil)); got != want {
			t.Errorf("with the client %T, lists cannot be streamed: %t, want %t", client, got, want)
		}
	}
}
