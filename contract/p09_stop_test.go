package contract_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
)

// TestP09_GoexitOfACallbackEndsTheInformer: a transform or an index function that ends its
// goroutine, as a failing test does, ends the informer in the order of a stop. Nobody waits for
// it in vain, and nothing is left of it.
func TestP09_GoexitOfACallbackEndsTheInformer(t *testing.T) {
	for _, name := range []string{"transform", "index function"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				exit := func(callback string, c *corev1.ConfigMap) {
					if callback == name && c.Name == "b" {
						runtime.Goexit()
					}
				}
				events := make(chan source.Event[*corev1.ConfigMap], 1)
				i, err := tidings.NewInformer(
					&fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", "1", "1")}}, events: events},
					tidings.InformerOptions[*corev1.ConfigMap]{
						Transform: func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
							exit("transform", c)
							return c, nil
						},
						Indexes: []*tidings.Index[*corev1.ConfigMap]{
							tidings.NewIndex("n", func(c *corev1.ConfigMap) []string {
								exit("index function", c)
								return nil
							}),
						},
					})
				if err != nil {
					t.Fatal(err)
				}
				registration, err := i.AddHandler(ignore[*corev1.ConfigMap](), tidings.HandlerOptions{})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					expectError(t, "Run", i.Run(context.Background()), tidings.ErrGoexit)
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := i.WaitForSync(ctx); err != nil {
					t.Fatal(err)
				}
				events <- source.Event[*corev1.ConfigMap]{Type: source.Added, Item: source.ItemOf(stateAt("b", "2", "1"))}
				expectError(t, "WaitFor", i.WaitFor(ctx, "2"), tidings.ErrStopped)
				<-registration.Done()
				<-ended
				if state := i.Health().State; state != tidings.StateStopped {
					t.Errorf("the informer is %s", state)
				}
			})
		})
	}
}

// TestP09_MapperThatDoesNotAnswer ends the informer while the mapper is asked.
func TestP09_MapperThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper := &stuckMapper{answer: make(chan struct{})}
		o := tidings.FactoryOptions{Scheme: widgetScheme(), Mapper: mapper}
		w := newWorld(t, widgetKinds["typed"], o, apisim.Options{})
		defer close(mapper.answer)
		defer w.end()
		w.probe = w.ask(t, w.factory, tidings.Selection{})
		w.startFactory()
		time.Sleep(time.Minute)
	})
}

type stuckMapper struct {
	meta.RESTMapper
	answer chan struct{}
}

func (m *stuckMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	<-m.answer
	return nil, errors.New("too late")
}

// TestP09_StopWhileTheScopeIsFound ends the context with the first question to the server.
func TestP09_StopWhileTheScopeIsFound(t *testing.T) {
	byDefault(t, tidings.FactoryOptions{}, func(w *world) {
		w.define("widgets", "Cluster")
		ctx, cancel := context.WithCancel(w.ctx)
		w.gate.set(func(http.ResponseWriter, *http.Request) bool {
			cancel()
			return false
		})
		w.must(w.factory.Start(ctx))
		synctest.Wait()
		if h := w.health(); h.State != tidings.StateStopped {
			w.Errorf("health is %+v", h)
		}
	})
}

// TestP09_ATransformThatAddsANamespace: the transform of a namespace uses the informer while
// another namespace, which has an object for it, is removed.
func TestP09_ATransformThatAddsANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		w.haveIn(2, "a", "b")
		w.haveNamespaces("c")
		var i *tidings.Informer[*corev1.ConfigMap]
		transform := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if c.Labels["n"] == "2" {
				time.Sleep(2 * time.Second)
				_ = i.Health()
				return c, i.AddNamespace("c")
			}
			return c, nil
		})
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespaces: []string{"a", "b"}, Transform: transform})
		w.must(err)
		w.probe = newProbe(t, i, nil)
		w.start()
		w.createIn("a", "new", "2")
		synctest.Wait()
		time.Sleep(time.Second)
		w.createIn("b", "other", "1")
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- i.RemoveNamespace("b") }()
		w.after(time.Minute)
		select {
		case err := <-done:
			w.must(err)
			w.end()
		default:
			t.Fatal("RemoveNamespace has not returned after a minute")
		}
	})
}

// A loop over events ends with the informer, not only with its own context, and says so.
func TestP09_LoopOverEventsEndsWithTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, err := tidings.NewInformer(&fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", "1", "1")}}},
			tidings.InformerOptions[*corev1.ConfigMap]{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran, events := make(chan error, 1), 0
		go func() { ran <- i.Run(ctx) }()
		go func() { time.Sleep(time.Second); stop() }()
		var end error
		for _, err := range i.Events(t.Context()) {
			if end = err; err == nil {
				events++
			}
		}
		if err := <-ran; err != nil || events != 1 {
			t.Errorf("Run: %v, after %d events", err, events)
		}
		expectError(t, "the end of the loop", end, tidings.ErrStopped, i.Name())
	})
}
