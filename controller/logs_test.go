package controller_test

import (
	"context"
	"iter"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/test/logtable"
)

// TestLogs makes controllers log the lines of docs/logs.md, and no others, under faults.
func TestLogs(t *testing.T) {
	lines := logtable.New("controller")
	for _, test := range []func(*world, *logtable.Lines){
		logCalls, logDiscovery, logRewrites, logManager, logHeld, logUnknown, logTakeovers, logOptional,
	} {
		inWorld(t, func(w *world) { test(w, lines) })
	}
	if err := lines.Compare("../docs/logs.md", "Controllers",
		"the queue is out of step"); err != nil {
		t.Error(err)
	}
}

// logCalls has calls that fail for an hour, each in another way.
func logCalls(w *world, lines *logtable.Lines) {
	conflict := apierrors.NewConflict(
		schema.GroupResource{Resource: "configmaps"}, "conflict", errLater)
	for _, name := range []string{
		"terminal", "panics", "fails", "also-fails", "takes-long", "conflict",
	} {
		create(w, configMap("a", name))
	}
	secrets := informer[*corev1.Secret](w)
	create(w, secret("a", "s"))
	c := newController(w, options{Logger: lines.Logger(), Timeout: 10 * time.Minute, MaxDelay: time.Second, Workers: 4,
		Secondaries: []secondary{controller.Maps(secrets,
			func(*corev1.Secret) iter.Seq[string] { panic("no keys") })},
	}, func(ctx context.Context, r request) (controller.Result, error) {
		switch r.Name() {
		case "terminal":
			return controller.Result{}, controller.Terminal(errLater)
		case "panics":
			panic("no call")
		case "takes-long":
			<-ctx.Done()
		case "conflict":
			return controller.Result{}, conflict
		}
		return controller.Result{}, errLater
	})
	stop := start(w, c)
	time.Sleep(time.Second)
	create(w, secret("a", "later"))
	time.Sleep(time.Hour)
	const retried = "Warn | `a call failed, and is tried again` | `key`, `call`, `failures`, `error`"
	if n := lines.Kinds()[retried]; n < 55 || n > 62 {
		w.Errorf("%d lines about calls that failed in an hour, want one a minute", n)
	}
	fatal(w.T, stop())
}

// logDiscovery has a server that does not return the resource of a secondary.
func logDiscovery(w *world, lines *logtable.Lines) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	fatal(w.T, w.server.Register(apisim.Resource{
		Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource, Kind: "Widget", Namespaced: true,
	}))
	widgets, err := tidings.Dynamic(w.factory, gvr, tidings.Selection{})
	fatal(w.T, err)
	c := newController(w, options{Logger: lines.Logger(),
		Secondaries: []secondary{controller.Owns(widgets)}}, isCalled(&calls{}))
	fatal(w.T, w.factory.Start(w.ctx))
	fatal(w.T, widgets.WaitForSync(w.ctx))
	refusal := w.server.Inject(apisim.Match{Verb: http.MethodGet}, apisim.Refuse(503, 0))
	stop := start(w, c)
	time.Sleep(5 * time.Second)
	refusal.Lift()
	time.Sleep(30 * time.Second)
	fatal(w.T, stop())
}

// logRewrites has a fight and a loop, which come to rest.
func logRewrites(w *world, lines *logtable.Lines) {
	for _, name := range []string{"x", "loop"} {
		fatal(w.T, apply(w.ctx, w, name, "user", "value", "zero"))
	}
	var over atomic.Bool
	insist := func(manager string) controller.Func[*corev1.ConfigMap] {
		insisting := insists(w, manager, manager)
		return func(ctx context.Context, r request) (controller.Result, error) {
			switch {
			case over.Load():
				return controller.Result{}, nil
			case r.Name() == "x":
				return insisting(ctx, r)
			case manager == "one":
				time.Sleep(time.Second)
				return controller.Result{}, apply(ctx, w, "loop", manager, "at", time.Now().String())
			}
			return controller.Result{}, nil
		}
	}
	one := newController(w, options{Name: "one", Logger: lines.Logger()}, insist("one"))
	two := newController(w, options{Name: "two"}, insist("two"))
	stopOne, stopTwo := start(w, one), start(w, two)
	time.Sleep(2 * time.Minute)
	over.Store(true)
	time.Sleep(12 * time.Minute)
	fatal(w.T, stopTwo())
	fatal(w.T, stopOne())
}

// logManager has a controller whose resource is missing.
func logManager(w *world, lines *logtable.Lines) {
	m, err := controller.NewManager(w.factory, controller.ManagerOptions{Logger: lines.Logger()})
	fatal(w.T, err)
	var log calls
	late := table(w, "late", &log)
	late.Requires = []schema.GroupVersionResource{
		{Group: "example.com", Version: "v1", Resource: "widgets"},
	}
	fatal(w.T, m.Add(late, table(w, "first", &log)))
	stop := run(w, m)
	synctest.Wait()
	fatal(w.T, stop())
}
