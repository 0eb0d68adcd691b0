package metrics

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/controller"
	restsource "github.com/tidings-go/tidings/source"
)

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var silent = slog.New(slog.DiscardHandler)

// start starts a server with a ConfigMap, and a factory for it.
func start(t *testing.T) (*apisim.Server, *tidings.Factory) {
	t.Helper()
	server := apisim.Start(t)
	create(t, server, "one")
	config := server.Config()
	config.QPS = -1
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Logger: silent})
	fatal(t, err)
	return server, factory
}

func create(t *testing.T, server *apisim.Server, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	_, err := server.Create(t.Context(), object)
	fatal(t, err)
}

// TestAnInformerIsFollowed: its metrics are those of its present state, and there are none when
// it is released.
func TestAnInformerIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, factory := start(t)
		c := collector(t, Options{}, factory)
		maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		fatal(t, err)
		_, err = maps.AddHandler(tidings.HandlerFunc[*corev1.ConfigMap](
			func(tidings.Event[*corev1.ConfigMap]) { time.Sleep(2 * time.Second) },
		), tidings.HandlerOptions{Name: "slow"})
		fatal(t, err)
		const informer = "informer=configmaps.v1"
		expect(t, c, 1, "tidings_informer_state", informer, "state=Pending")
		expect(t, c, 0, "tidings_informer_synced", informer)

		fatal(t, factory.Start(t.Context()))
		fatal(t, factory.WaitForSync(t.Context()))
		time.Sleep(10 * time.Second)
		create(t, server, "two")
		create(t, server, "three")
		time.Sleep(time.Second)
		expect(t, c, 3, "tidings_informer_objects", informer)
		expect(t, c, 1, "tidings_informer_state", informer, "state=Watching")
		expect(t, c, 1, "tidings_informer_last_event_age_seconds", informer)
		expect(t, c, 1, "tidings_handler_running_seconds", informer, "handler=slow")
		expect(t, c, 2, "tidings_handler_pending_notifications", informer, "handler=slow")
		time.Sleep(10 * time.Second)
		expect(t, c, 3, "tidings_handler_call_duration_seconds", informer, "handler=slow")
		expect(t, c, 0, "tidings_handler_running_seconds", informer, "handler=slow")

		server.Inject(apisim.Match{Verb: "watch"}, apisim.Refuse(403, 0))
		server.Inject(apisim.Match{Verb: "list"}, apisim.Refuse(403, 0))
		time.Sleep(time.Hour)
		expect(t, c, 1, "tidings_informer_state", informer, "state=Forbidden")

		maps.Release()
		synctest.Wait()
		if families := gathered(t, c); len(families) > 0 {
			t.Errorf("%d metrics after the release", len(families))
		}
		fatal(t, factory.Shutdown(t.Context()))
	})
}

// TestNothingKeepsAnInformer: the collector holds neither a released informer nor a stopped one
// without a factory.
func TestNothingKeepsAnInformer(t *testing.T) {
	var cached weak.Pointer[corev1.ConfigMap]
	c := New(Options{})
	synctest.Test(t, func(t *testing.T) {
		_, factory := start(t)
		fatal(t, c.Add(factory))
		maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		fatal(t, err)
		fatal(t, factory.Start(t.Context()))
		fatal(t, factory.WaitForSync(t.Context()))
		object, err := maps.Lister().Get("default/one")
		fatal(t, err)
		cached = weak.Make(object)
		gathered(t, c)
		maps.Release()
		gathered(t, c)
		fatal(t, factory.Shutdown(t.Context()))
	})
	for i := 0; cached.Value() != nil; i++ {
		if i == 10 {
			t.Fatal("a cached object is in memory after the release")
		}
		runtime.GC()
	}
	runtime.KeepAlive(c)
}

func TestAnInformerWithoutAFactoryLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := start(t)
		client, err := restsource.NewClient(server.Config(), nil)
		fatal(t, err)
		of := restsource.Resource{
			Version: "v1", Name: "configmaps", Kind: "ConfigMap", Scope: restsource.ScopeNamespaced,
		}
		informer, err := tidings.NewInformer(
			restsource.NewTyped[*corev1.ConfigMap](client, of,
				func() *corev1.ConfigMap { return new(corev1.ConfigMap) }, restsource.RESTOptions{}),
			tidings.InformerOptions[*corev1.ConfigMap]{Name: "maps", Logger: silent})
		fatal(t, err)
		c := collector(t, Options{}, informer)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- informer.Run(ctx) }()
		fatal(t, informer.WaitForSync(ctx))
		expect(t, c, 1, "tidings_informer_objects", "informer=maps")
		cancel()
		fatal(t, <-ended)
		if families := gathered(t, c); len(families) > 0 || c.sources.Len() > 0 {
			t.Errorf("%d metrics and %d sources after the stop", len(families), c.sources.Len())
		}
	})
}

// TestDropIns: a factory of drop-in informers has the metrics of its informers, under the names of
// client-go too while they have a name.
func TestDropIns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := start(t)
		client, err := kubernetes.NewForConfig(server.Config())
		fatal(t, err)
		name, err := cache.NewInformerName("mine")
		fatal(t, err)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithInformerName(name))
		maps := factory.Core().V1().ConfigMaps().Informer()
		c := collector(t, Options{ClientGo: true}, factory)
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		synctest.Wait()
		time.Sleep(time.Second)
		expect(t, c, 1, "tidings_informer_objects", "informer=*v1.ConfigMap")
		labels := []string{"name=mine", "group=", "version=v1", "resource=configmaps"}
		expect(t, c, 0, "informer_queued_items", labels...)
		if n, _ := value(gathered(t, c), "informer_processing_latency_seconds", labels...); n < 1 {
			t.Errorf("%v batches were counted", n)
		}
		name.Release()
		for _, f := range gathered(t, c) {
			if strings.HasPrefix(f.GetName(), "informer_") {
				t.Errorf("%s of a name that was released", f.GetName())
			}
		}
		alone := collector(t, Options{}, maps.GetStore())
		expect(t, alone, 1, "tidings_informer_synced", "informer=*v1.ConfigMap")
		cancel()
		factory.Shutdown()
		if families := gathered(t, alone); len(families) > 0 {
			t.Errorf("%d metrics after the stop", len(families))
		}
	})
}

// TestControllers runs a controller for two terms. Its counters go on.
func TestControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, factory := start(t)
		maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		fatal(t, err)
		reconcile := func(
			ctx context.Context, r controller.Request[*corev1.ConfigMap],
		) (result controller.Result, err error) {
			time.Sleep(time.Second)
			switch {
			case r.Name() == "two" && r.Failures == 0:
				panic("a test")
			case r.Name() == "three":
				return result, controller.Terminal(context.Canceled)
			case r.Name() == "four":
				result.RequeueAfter = time.Hour
			case r.Name() == "five":
				<-ctx.Done()
			}
			return result, nil
		}
		one, err := controller.New(maps, controller.Options[*corev1.ConfigMap]{
			Name: "one", Logger: silent, Timeout: 5 * time.Second,
		}, reconcile)
		fatal(t, err)
		c := collector(t, Options{ControllerRuntime: true}, one)
		expect(t, c, 1, "tidings_controller_state", "controller=one", "state=Stopped")
		fatal(t, factory.Start(t.Context()))
		for term := range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- one.Run(ctx) }()
			time.Sleep(20 * time.Second)
			if term == 0 {
				expect(t, c, 1, "controller_runtime_reconcile_total", "result=success")
				expect(t, c, 1, "workqueue_adds_total", "name=one")
				for _, name := range []string{"two", "three", "four", "five"} {
					create(t, server, name)
				}
				time.Sleep(1500 * time.Millisecond)
				expect(t, c, 0.5, "tidings_controller_longest_running_seconds", "controller=one")
				time.Sleep(10 * time.Second)
			}
			cancel()
			fatal(t, <-ended)
		}
		const total = "controller_runtime_reconcile_total"
		expect(t, c, 6, total, "controller=one", "result=success")
		expect(t, c, 2, "controller_runtime_reconcile_timeouts_total", "controller=one")
		expect(t, c, 2, total, "controller=one", "result=requeue_after")
		expect(t, c, 4, total, "controller=one", "result=error")
		expect(t, c, 2, "tidings_controller_panics_total", "controller=one")
		expect(t, c, 2, "tidings_controller_errors_total", "controller=one", "kind=terminal")
		expect(t, c, 12, "tidings_controller_call_duration_seconds", "controller=one")
		expect(t, c, 4, "workqueue_retries_total", "name=one")
		fatal(t, factory.Shutdown(t.Context()))
	})
}

// TestLongestParked has two keys that are held back.
func TestLongestParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const metric = "tidings_controller_longest_parked_seconds"
		m := &manager{controller.ManagerHealth{Controllers: []controller.Health{{Name: "one"}}}}
		c := collector(t, Options{}, m)
		expect(t, c, 0, metric, "controller=one")
		m.health.Controllers[0].Parked = []controller.Parked{
			{Since: time.Now()}, {Since: time.Now().Add(time.Second)},
		}
		time.Sleep(90 * time.Second)
		expect(t, c, 90, metric, "controller=one")
	})
}
