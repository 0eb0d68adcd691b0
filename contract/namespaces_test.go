package contract_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// inNamespaces runs a test for every kind of informer, of namespaces a and b.
func inNamespaces(t *testing.T, test func(w *world)) {
	t.Helper()
	s := tidings.Selection{Namespaces: []string{"a", "b"}}
	propertyWith(t, tidings.FactoryOptions{}, s, func(w *world) {
		w.haveNamespaces("a", "b", "c", "d", "e")
		test(w)
	})
}

// holds compares the cache with the objects of the server in some namespaces.
func (w *world) holds(namespaces ...string) {
	w.Helper()
	if got, want := w.probe.state(), w.serverStateOf(namespaces...); !maps.Equal(got, want) {
		w.Errorf("the cache holds %v, the server has %v in %v", got, want, namespaces)
	}
	if got := w.probe.informer().Namespaces(); !slices.Equal(got, namespaces) {
		w.Errorf("the informer says it holds %v, want %v", got, namespaces)
	}
}

func TestNamespacesBeforeTheStartBelongToTheInitialSet(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.createIn("a", "x", "1")
		w.createIn("c", "y", "1")
		var told follow.Follower
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		w.must(w.probe.informer().AddNamespace("c"))
		w.must(w.probe.informer().RemoveNamespace("a"))
		w.start()
		w.holds("b", "c")
		expect(w, told.Texts(), "Added c/y initial 1")
	})
}

func TestNamespacesThatCannotBeChanged(t *testing.T) {
	inNamespaces(t, func(w *world) {
		i := w.probe.informer()
		w.must(i.RemoveNamespace("b"))
		all := w.ask(w.T, w.factory, tidings.Selection{AllNamespaces: true}).informer()
		nodes, err := tidings.For[*corev1.Node](w.factory, tidings.Selection{})
		if err != nil {
			w.Fatal(err)
		}
		released := w.ask(w.T, w.factory, tidings.Selection{Namespace: "c"}).informer()
		released.Release()
		for name, test := range map[string]struct{ err, is error }{
			"the last one":         {i.RemoveNamespace("a"), tidings.ErrLastNamespace},
			"of all":               {all.AddNamespace("a"), tidings.ErrAllNamespaces},
			"of all, removed":      {all.RemoveNamespace("a"), tidings.ErrAllNamespaces},
			"of a cluster's type":  {nodes.AddNamespace("a"), tidings.ErrClusterScoped},
			"of a released handle": {released.AddNamespace("a"), tidings.ErrReleased},
			"with a name of none":  {i.AddNamespace("No/Such"), nil},
		} {
			if test.err == nil || test.is != nil && !errors.Is(test.err, test.is) {
				w.Errorf("%s: %v, want %v", name, test.err, test.is)
			}
		}
		w.start()
		w.holds("a")
		w.stop()
		synctest.Wait()
		if err := i.AddNamespace("b"); !errors.Is(err, tidings.ErrStopped) {
			w.Errorf("AddNamespace after the stop: %v", err)
		}
	})
}

func TestInformerIsSharedByTheNamespacesOfNow(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.start()
		other := w.ask(w.T, w.factory, tidings.Selection{Namespaces: []string{"a", "c"}})
		w.must(w.probe.informer().RemoveNamespace("b"))
		// Asking for a finds the informer that holds it now; asking for its former namespaces makes
		// another one.
		now := w.ask(w.T, w.factory, tidings.Selection{Namespace: "a"}).informer()
		before := w.ask(w.T, w.factory,
			tidings.Selection{Namespaces: []string{"a", "b"}}).informer()
		w.start()
		if n := len(w.factory.Health()); n != 3 {
			w.Errorf("the factory has %d informers, want 3", n)
		}
		w.must(now.AddNamespace("d"))
		got := fmt.Sprint(w.probe.informer().Namespaces(), now.Namespaces(), before.Namespaces())
		if got != "[a d] [a d] [a b]" {
			w.Errorf("they hold %s", got)
		}
		// A selection that another informer has stays that informer's.
		w.must(now.RemoveNamespace("d"))
		w.must(now.AddNamespace("c"))
		third := w.ask(w.T, w.factory, tidings.Selection{Namespaces: []string{"a", "c"}}).informer()
		w.must(third.AddNamespace("e"))
		if got := fmt.Sprint(other.informer().Namespaces(), now.Namespaces()); got != "[a c e] [a c]" {
			w.Errorf("they hold %s", got)
		}
		for _, i := range []informer{w.probe.informer(), now} {
			i.Release()
		}
		synctest.Wait()
		if n := len(w.factory.Health()); n != 2 {
			w.Errorf("after the release the factory has %d informers, want 2", n)
		}
	})
}

// TestNamespacesComeAndGo changes namespaces from many goroutines, with writes beside
// and handlers that follow, and compares at the end.
func TestNamespacesComeAndGo(t *testing.T) {
	inNamespaces(t, func(w *world) {
		l := w.follow()
		w.start()
		i := w.probe.informer()
		var changing sync.WaitGroup
		for _, namespace := range []string{"b", "c", "d", "e"} {
			changing.Go(func() {
				for round := range 10 {
					time.Sleep(time.Duration(round) * time.Millisecond)
					if err := i.AddNamespace(namespace); err != nil {
						w.Error(err)
					}
					if err := i.RemoveNamespace(namespace); err != nil {
						w.Error(err)
					}
				}
				if err := i.AddNamespace(namespace); err != nil {
					w.Error(err)
				}
			})
		}
		for n := range 100 {
			w.createIn(string(rune('a'+n%5)), fmt.Sprint("object-", n), "1")
			if n%10 == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		changing.Wait()
		w.settle()
		w.holds("a", "b", "c", "d", "e")
		if held, cache := l.Held(), w.probe.state(); !maps.Equal(held, cache) {
			w.Errorf("the handler adds up to %v, the cache holds %v", held, cache)
		}
	})
}

// slowToEnd is a transport whose watches take a second to end.
type slowToEnd struct{ http.RoundTripper }

func (s slowToEnd) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Has("watch") {
		answer.Body = endingBody{answer.Body, r.Context()}
	}
	return answer, err
}

type endingBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.ctx.Err() != nil {
		time.Sleep(time.Second)
	}
	return n, err
}

func TestWatchHasEndedWhenItsNamespaceIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		config := w.server.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowToEnd{next} })
		var err error
		w.factory, err = tidings.NewFactory(config, tidings.FactoryOptions{})
		w.must(err)
		s := tidings.Selection{Namespaces: []string{"a", "b"}}
		informer, err := tidings.For[*corev1.ConfigMap](w.factory, s)
		w.must(err)
		w.start()
		synctest.Wait()
		began := time.Now()
		w.must(informer.RemoveNamespace("b"))
		if took := time.Since(began); took != time.Second {
			t.Errorf("the removal returned after %v, the watch ended after a second", took)
		}
	})
}
