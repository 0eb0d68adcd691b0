package listwatch

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// podClient has one answer, and keeps the options and contexts of its calls.
type podClient struct {
	list  *corev1.PodList
	watch watch.Interface
	err   error
	asked []metav1.ListOptions
	ctx   context.Context
}

func (c *podClient) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	c.ctx, c.asked = ctx, append(c.asked, o)
	return c.list, c.err
}

func (c *podClient) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	c.ctx, c.asked = ctx, append(c.asked, o)
	return c.watch, c.err
}

func opening(c *podClient) func() (Client, error) {
	return func() (Client, error) { return ClientOf(c), nil }
}

var someOptions = metav1.ListOptions{ResourceVersion: "7"}

// calls has the four methods that list or watch, the two deprecated ones included.
var calls = map[string]func(ctx context.Context, lw cache.ListerWatcher) (any, error){
	//lint:ignore SA1019 wrappers that programs wrote for client-go call it
	"List": func(_ context.Context, lw cache.ListerWatcher) (any, error) { return lw.List(someOptions) },
	//lint:ignore SA1019 wrappers that programs wrote for client-go call it
	"Watch": func(_ context.Context, lw cache.ListerWatcher) (any, error) { return lw.Watch(someOptions) },
	"ListWithContext": func(ctx context.Context, lw cache.ListerWatcher) (any, error) {
		return lw.(cache.ListerWithContext).ListWithContext(ctx, someOptions)
	},
	"WatchWithContext": func(ctx context.Context, lw cache.ListerWatcher) (any, error) {
		return lw.(cache.WatcherWithContext).WatchWithContext(ctx, someOptions)
	},
}

// TestFromClientCalls wraps the ListerWatcher with WithSharing, which passes calls on.
func TestFromClientCalls(t *testing.T) {
	type key struct{}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			c := &podClient{list: &corev1.PodList{}, watch: watch.NewFake()}
			lw := WithSharing(FromClient(nil, opening(c), func(o *metav1.ListOptions) { o.LabelSelector += "color=red" }), Sharing{})
			got, err := call(context.WithValue(t.Context(), key{}, "caller's"), lw)
			if err != nil || got != any(c.list) && got != any(c.watch) {
				t.Errorf("%v, %v; want the client's result", got, err)
			}
			if passed, has := c.ctx.Value(key{}) != nil, strings.HasSuffix(name, "Context"); passed != has {
				t.Errorf("the client has the caller's context: %t, want %t", passed, has)
			}
			_, again := call(t.Context(), lw)
			_, plain := call(t.Context(), FromClient(nil, opening(c), nil))
			if err := errors.Join(again, plain); err != nil {
				t.Error(err)
			}
			for n, want := range []string{"color=red", "color=red", ""} {
				if o := c.asked[n]; o.ResourceVersion != "7" || o.LabelSelector != want {
					t.Errorf("call %d has the options %v, want the label selector %q", n, o, want)
				}
			}
		})
	}
}

// TestFromClientErrors: the client fails, or cannot be opened. A failed List returns a nil
// pointer, which must not count as a list.
func TestFromClientErrors(t *testing.T) {
	refused, none := errors.New("refused"), errors.New("no client")
	for name, call := range calls {
		for want, open := range map[error]func() (Client, error){
			refused: opening(&podClient{err: refused}), none: func() (Client, error) { return nil, none },
		} {
			got, err := call(t.Context(), FromClient(nil, open, nil))
			if list, ok := got.(runtime.Object); ok || !errors.Is(err, want) {
				t.Errorf("%s returns %v and the error %v, want %v", name, list, err, want)
			}
		}
	}
}

// unstreaming declares that it cannot stream lists.
type unstreaming struct{}

func (unstreaming) IsWatchListSemanticsUnSupported() bool { return true }

func TestFromClientAsksClient(t *testing.T) {
	for client, want := range map[any]bool{unstreaming{}: true, struct{}{}: false, nil: false} {
		lw := FromClient(client, opening(&podClient{}), nil)
		for _, lw := range []cache.ListerWatcher{lw, WithSharing(lw, Sharing{})} {
			if got := watchlist.DoesClientNotSupportWatchListSemantics(lw); got != want {
				t.Errorf("with the client %T, lists cannot be streamed: %t, want %t", client, got, want)
			}
			if _, versions := New(lw, Options{}); versions.Trusted() == want {
				t.Errorf("with the client %T, versions are trusted: %t", client, versions.Trusted())
			}
		}
	}
}
