package tidings_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
)

// asking is a slog.Handler that calls a function for each record and each With.
type asking struct {
	slog.Handler
	ask func()
}

func (a asking) Enabled(context.Context, slog.Level) bool  { return true }
func (a asking) Handle(context.Context, slog.Record) error { a.ask(); return nil }
func (a asking) WithAttrs([]slog.Attr) slog.Handler        { a.ask(); return a }
func (a asking) WithGroup(string) slog.Handler             { return a }

// TestCallbacksAskHealth: the logger, OnMutation, a transform and an index function may ask the
// factory and the informer how they are, and read the cache.
func TestCallbacksAskHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apisim.Start(t)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		var ask func()
		var logged, mutated, transformed, indexed atomic.Int64
		count := func(n *atomic.Int64) {
			n.Add(1)
			if ask != nil {
				ask()
			}
		}
		factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{
			Logger: slog.New(asking{ask: func() { count(&logged) }}), DetectMutations: true,
			OnMutation: func(tidings.Mutation) { count(&mutated) },
		})
		must(err)
		maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Transform: tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			count(&transformed)
			return c, nil
		})})
		must(err)
		ask = func() {
			factory.Health()
			maps.Health()
			maps.Lister().Snapshot().Len()
		}
		must(maps.AddIndex(tidings.NewIndex("broken", func(*corev1.ConfigMap) []string {
			count(&indexed)
			panic("no index")
		})))
		_, err = maps.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
			OnAdd: func(c *corev1.ConfigMap, _ bool) { c.Labels = map[string]string{"written": "by a handler"} },
		}, tidings.HandlerOptions{})
		must(err)
		_, err = server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
		must(err)
		ctx, stop := context.WithCancel(t.Context())
		must(factory.Start(ctx))
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		must(factory.Shutdown(t.Context()))
		if logged.Load() == 0 || mutated.Load() == 0 || transformed.Load() == 0 || indexed.Load() == 0 {
			t.Errorf("called were the logger %d, OnMutation %d, the transform %d and the index function %d times",
				logged.Load(), mutated.Load(), transformed.Load(), indexed.Load())
		}
	})
}

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
				registration, err := i.AddHandler(tidings.Funcs[*corev1.ConfigMap]{}, tidings.HandlerOptions{})
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
				if state := i.Health().State; state != tidings.Stopped {
					t.Errorf("the informer is %s", state)
				}
			})
		})
	}
}
