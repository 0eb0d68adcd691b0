package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/controller"
)

// mapped records the calls and the mappings of a program with secrets.
type mapped struct {
	keys     sync.Map     // of calls
	distinct atomic.Int64 // number of keys
	mappings atomic.Int64 // of secrets, where the program counts them
	watched  atomic.Bool  // the program has started
	changed  chan moment  // secrets, when the cache stores them
	called   chan moment  // calls
}

// moment is the time of an event of a key.
type moment struct {
	key string
	at  time.Time
}

func (m *mapped) call(key string) {
	if _, known := m.keys.LoadOrStore(key, true); !known {
		m.distinct.Add(1)
	}
	if m.watched.Load() {
		m.called <- moment{key, time.Now()}
	}
}

// change is an index function without values, which the cache calls when it stores a secret.
func (m *mapped) change(o metav1.Object) []string {
	if m.watched.Load() {
		m.changed <- moment{keyOf(o), time.Now()}
	}
	return nil
}

// mapping is a way to find the deployments that mention a secret.
type mapping struct {
	stack string
	// ready reports whether the program has completed its start.
	ready func(m *mapped, s served) bool
	main  func(ctx context.Context, c *rest.Config, m *mapped) error
	// noStart is set for a program that starts without mappings, unlike real programs.
	noStart bool
}

// references measures the start of a program whose objects mention secrets, and the time from the
// arrival of a changed secret in the cache to the call of the object that mentions it.
func references(t *testing.T) []cost {
	s := served{Secrets: pick(160, 8_000, 80_000), Primaries: pick(10, 500, 5_000)}
	called := func(m *mapped, s served) bool { return m.distinct.Load() == int64(s.Primaries) }
	mappings := []mapping{
		{ours.name, called, tidingsReferences, false},
		{controllerRuntime.name, func(m *mapped, s served) bool {
			return called(m, s) && m.mappings.Load() >= int64(s.Secrets)
		}, indexedReferences, false},
		{scanned, called, scannedReferences, true},
	}
	size := fmt.Sprintf("%d secrets, %d primaries", s.Secrets, s.Primaries)
	row := func(name, target string) cost { return cost{name, target, map[string]string{}} }
	begin, beginAllocs := row("start, "+size, ""), row("allocations of the start", "")
	change := row("arrival of a changed secret to the call", "≤ 1 ms")
	changeAllocs := row("allocations of it, with the write", "")
	scan := row("arrival to the call, all primaries listed", "")
	scanAllocs := row("allocations of that", "")
	for _, m := range mappings {
		t.Run(m.stack, func(t *testing.T) {
			started, median, changed := referencesOf(t, s, m)
			if m.noStart {
				scan.figures[controllerRuntime.name] = millis(median)
				scanAllocs.figures[controllerRuntime.name] = fmt.Sprintf("%.0f", changed.Allocs)
				return
			}
			begin.figures[m.stack] = millis(started.Wall)
			beginAllocs.figures[m.stack] = fmt.Sprintf("%.0f", started.Allocs)
			change.figures[m.stack] = millis(median)
			changeAllocs.figures[m.stack] = fmt.Sprintf("%.0f", changed.Allocs)
		})
	}
	return []cost{begin, beginAllocs, change, changeAllocs, scan, scanAllocs}
}

// scanned is the program of controller-runtime that lists all primaries.
const scanned = "controller-runtime, scan"

// referencesOf returns the usage of the start of a program, the median time from a change to its
// call, and the usage of a change.
func referencesOf(t *testing.T, s served, way mapping) (
	started measure.Usage, median time.Duration, change measure.Usage,
) {
	config := s.start(t)
	clients, err := kubernetes.NewForConfig(config)
	fatal(t, err)
	m := &mapped{changed: make(chan moment, 1000), called: make(chan moment, 1000)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	measure.LiveHeap()
	started = measure.Of(t, func() {
		go func() { ended <- way.main(ctx, config, m) }()
		for begun := time.Now(); !way.ready(m, s); time.Sleep(time.Millisecond) {
			if time.Since(begun) > waitLimit {
				t.Fatalf("after %v: %d primaries are called, %d secrets mapped", waitLimit,
					m.distinct.Load(), m.mappings.Load())
			}
		}
	})
	var times []time.Duration
	changes := pick(3, 20, 100)
	m.watched.Store(true)
	change = measure.Of(t, func() {
		for i := range changes {
			times = append(times, changeSecret(t, clients, m, s, i*7919%s.Secrets, i))
		}
	})
	stop()
	fatal(t, <-ended)
	change.Allocs /= float64(changes)
	slices.Sort(times)
	return started, times[len(times)/2], change
}

// changeSecret changes a secret and returns the time from its arrival to the call of its primary.
func changeSecret(
	t *testing.T, c kubernetes.Interface, m *mapped, s served, secret, state int,
) time.Duration {
	t.Helper()
	want := opsNamespace + "/" + primaryName(secret%s.Primaries)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"state":"%d"}}}`, state)
	_, err := c.CoreV1().Secrets(opsNamespace).Patch(t.Context(), secretName(secret),
		types.MergePatchType, patch, metav1.PatchOptions{})
	fatal(t, err)
	arrived := next(t, m.changed, opsNamespace+"/"+secretName(secret))
	return next(t, m.called, want).Sub(arrived)
}

// next waits for the next moment of a key and returns its time.
func next(t *testing.T, moments <-chan moment, key string) time.Time {
	t.Helper()
	limit := time.After(waitLimit)
	for {
		select {
		case m := <-moments:
			if m.key == key {
				return m.at
			}
		case <-limit:
			t.Fatalf("after %v: nothing has happened to %s", waitLimit, key)
		}
	}
}

// tidingsReferences finds them with References.
func tidingsReferences(ctx context.Context, c *rest.Config, m *mapped) error {
	factory, err := tidings.NewFactory(c, tidings.FactoryOptions{})
	if err != nil {
		return err
	}
	primaries, err := tidings.For[*appsv1.Deployment](factory, tidings.Selection{})
	if err != nil {
		return err
	}
	secrets, err := tidings.For[*corev1.Secret](factory, tidings.Selection{})
	if err != nil {
		return err
	}
	arrivals := tidings.NewIndex("arrivals", func(s *corev1.Secret) []string { return m.change(s) })
	if err := secrets.AddIndex(arrivals); err != nil {
		return err
	}
	run, err := controller.New(primaries, controller.Options[*appsv1.Deployment]{
		Name: "references", Workers: 4, Logger: slog.New(slog.DiscardHandler),
		Secondaries: []controller.Secondary{
			controller.References(secrets, func(d *appsv1.Deployment) (keys []string) {
				for _, name := range secretsOf(d) {
					keys = append(keys, d.Namespace+"/"+name)
				}
				return keys
			}),
		},
	}, func(
		_ context.Context, r controller.Request[*appsv1.Deployment],
	) (controller.Result, error) {
		m.call(r.Key)
		return controller.Result{}, nil
	})
	if err != nil {
		return err
	}
	manager, err := controller.NewManager(factory, controller.ManagerOptions{
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	if err := manager.AddController(run); err != nil {
		return err
	}
	return manager.Run(ctx)
}

// secretsIndex is the field of the index of indexedReferences.
const secretsIndex = "secrets"

// indexedReferences finds them with an index of fields.
func indexedReferences(ctx context.Context, c *rest.Config, m *mapped) error {
	manager, err := ctrl.NewManager(c, runtimeOptions())
	if err != nil {
		return err
	}
	err = manager.GetFieldIndexer().IndexField(ctx, &appsv1.Deployment{}, secretsIndex,
		func(o crclient.Object) []string { return secretsOf(o.(*appsv1.Deployment)) })
	if err != nil {
		return err
	}
	return runReferences(ctx, manager, m, func(ctx context.Context, o crclient.Object) []ctrl.Request {
		m.mappings.Add(1)
		var found appsv1.DeploymentList
		err := manager.GetClient().List(ctx, &found, crclient.InNamespace(o.GetNamespace()),
			crclient.MatchingFields{secretsIndex: o.GetName()})
		if err != nil {
			return nil
		}
		var requests []ctrl.Request
		for i := range found.Items {
			requests = append(requests, requestFor(&found.Items[i]))
		}
		return requests
	})
}

// scannedReferences lists all primaries for a secret. It maps no secret of the first list: with
// those, its start would take that time for each of them.
func scannedReferences(ctx context.Context, c *rest.Config, m *mapped) error {
	manager, err := ctrl.NewManager(c, runtimeOptions())
	if err != nil {
		return err
	}
	return runReferences(ctx, manager, m, func(ctx context.Context, o crclient.Object) []ctrl.Request {
		var all appsv1.DeploymentList
		err := manager.GetClient().List(ctx, &all, crclient.InNamespace(o.GetNamespace()))
		if err != nil {
			return nil
		}
		var requests []ctrl.Request
		for i := range all.Items {
			if slices.Contains(secretsOf(&all.Items[i]), o.GetName()) {
				requests = append(requests, requestFor(&all.Items[i]))
			}
		}
		return requests
	}, builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
	}))
}

func requestFor(d *appsv1.Deployment) ctrl.Request {
	return ctrl.Request{NamespacedName: crclient.ObjectKeyFromObject(d)}
}

// runReferences runs a program of controller-runtime with a mapping function.
func runReferences(
	ctx context.Context, manager ctrl.Manager, m *mapped, keys handler.MapFunc,
	o ...builder.WatchesOption,
) error {
	err := manager.GetFieldIndexer().IndexField(ctx, &corev1.Secret{}, "arrivals",
		func(o crclient.Object) []string { return m.change(o) })
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(manager).Named("references").For(&appsv1.Deployment{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(keys), o...).
		Complete(reconcile.Func(func(
			_ context.Context, r reconcile.Request,
		) (reconcile.Result, error) {
			m.call(r.String())
			return reconcile.Result{}, nil
		}))
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
