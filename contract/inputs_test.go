package contract_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/shard"
	"github.com/tidings-go/tidings/source"
)

// input is a struct of options whose numbers are tried at their ends.
type input struct {
	empty any // a pointer to the struct, which has its required fields and no others
	use   func(b *bubble, options any) error
}

// isLong reports whether a time is longer than a use.
func isLong(d time.Duration) bool { return d > anHour }

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	asMap      = source.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}
)

// inputs are the structs of which each number is tried.
var inputs = map[string]input{
	"tidings.FactoryOptions": {new(tidings.FactoryOptions), func(b *bubble, o any) error {
		return b.follow(*o.(*tidings.FactoryOptions), tidings.HandlerOptions{}, false)
	}},
	"tidings.HandlerOptions": {new(tidings.HandlerOptions), func(b *bubble, o any) error {
		return b.follow(tidings.FactoryOptions{}, *o.(*tidings.HandlerOptions), false)
	}},
	"source.Transport": {new(source.Transport), func(b *bubble, o any) error {
		return b.follow(tidings.FactoryOptions{Transport: *o.(*source.Transport)}, tidings.HandlerOptions{}, false)
	}},
	"source.Budget": {new(source.Budget), func(b *bubble, o any) error {
		transport := source.Transport{ListBudget: &source.Budget{MaxBytes: o.(*source.Budget).MaxBytes}}
		return b.follow(tidings.FactoryOptions{Transport: transport}, tidings.HandlerOptions{}, false)
	}},
	"source.Backoff": {new(source.Backoff), func(b *bubble, o any) error {
		backoff := *o.(*source.Backoff)
		b.must(b.start(apisim.Options{}))
		b.server.Inject(apisim.Match{Resource: "configmaps", Times: 10}, apisim.Refuse(http.StatusServiceUnavailable, 0))
		return b.follow(tidings.FactoryOptions{Transport: source.Transport{Backoff: backoff}},
			tidings.HandlerOptions{}, isLong(backoff.Initial))
	}},
	"source.ListOptions":  {new(source.ListOptions), useListOptions},
	"source.WatchOptions": {new(source.WatchOptions), useWatchOptions},
	"source.ReplayOptions": {new(source.ReplayOptions), func(b *bubble, o any) error {
		recording, err := flight.Open("../flight/testdata/version-1.zip")
		b.must(err)
		track, err := recording.Track("")
		b.must(err)
		options := *o.(*source.ReplayOptions)
		played, err := source.Replay(track, func() *corev1.ConfigMap { return new(corev1.ConfigMap) }, options)
		if err != nil {
			return err
		}
		informer, err := tidings.NewInformer(played, tidings.InformerOptions[*corev1.ConfigMap]{Logger: discard})
		b.must(err)
		b.run(anHour, func(ctx context.Context) error { return ended(ctx, informer.Run(ctx)) })
		select {
		case <-played.Done():
		default:
			if options.Speed == 0 || options.Speed >= 1 {
				b.Error("it was not played in an hour")
			}
		}
		return nil
	}},
	"flight.Options": {new(flight.Options), func(b *bubble, o any) error {
		recorder, err := flight.New(*o.(*flight.Options))
		if err != nil {
			return err
		}
		err = b.follow(tidings.FactoryOptions{Transport: source.Transport{Recorder: recorder}}, tidings.HandlerOptions{}, false)
		b.must(err)
		var file bytes.Buffer
		b.must(recorder.Dump(&file, "a test"))
		_, err = flight.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
		b.must(err)
		return nil
	}},
	"apisim.Options": {new(apisim.Options), func(b *bubble, o any) error {
		if err := b.start(*o.(*apisim.Options)); err != nil {
			return err
		}
		return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, false)
	}},
	"apisim.Match": {new(apisim.Match), func(b *bubble, o any) error {
		b.must(b.start(apisim.Options{}))
		b.server.Inject(*o.(*apisim.Match), apisim.Delay(time.Second))
		return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, false)
	}},
	"apisim.RestartOptions": {new(apisim.RestartOptions), func(b *bubble, o any) error {
		b.must(b.start(apisim.Options{}))
		options := *o.(*apisim.RestartOptions)
		b.server.Restart(options)
		return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, isLong(options.Down))
	}},
	"controller.Options": {new(controller.Options[*corev1.ConfigMap]), func(b *bubble, o any) error {
		options := *o.(*controller.Options[*corev1.ConfigMap])
		failures := 3
		return b.reconcile(options, controller.GuardOptions{}, func(context.Context, request) (controller.Result, error) {
			if failures--; failures >= 0 && options.Workers < 2 {
				return controller.Result{}, errors.New("it fails")
			}
			return controller.Result{}, nil
		})
	}},
	"controller.Result": {new(controller.Result), func(b *bubble, o any) error {
		n := 0
		return b.reconcile(calm, controller.GuardOptions{}, func(context.Context, request) (controller.Result, error) {
			if n++; n > 10 {
				return controller.Result{}, nil
			}
			return *o.(*controller.Result), nil
		})
	}},
	"controller/guard.Options": {new(controller.GuardOptions), func(b *bubble, o any) error {
		return b.reconcile(calm, *o.(*controller.GuardOptions), nil)
	}},
	"controller.ManagerOptions":   {&controller.ManagerOptions{Logger: discard}, useManager},
	"controller/election.Options": {&election.Options{Namespace: "ops", Name: "test", Identity: "x", Logger: discard}, useElection},
	"shard.Options":               {&shard.Options{Namespace: "ops", Name: "test", Identity: "x", Logger: discard}, useGroup},
}

type request = controller.Request[*corev1.ConfigMap]

var calm controller.Options[*corev1.ConfigMap]

// reconcile runs a controller of config maps, whose first call writes unless there is a function.
func (b *bubble) reconcile(
	o controller.Options[*corev1.ConfigMap], guardOptions controller.GuardOptions, call controller.Func[*corev1.ConfigMap],
) error {
	b.Helper()
	b.must(b.start(apisim.Options{}))
	factory, err := tidings.NewFactory(b.server.Config(), tidings.FactoryOptions{Logger: discard})
	b.must(err)
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	b.must(err)
	guard, err := controller.NewGuard(b.server.Config(), guardOptions)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(guard.Config())
	b.must(err)
	var n atomic.Int64
	o.Name, o.Guard, o.Logger = "test", guard, discard
	c, err := controller.New(informer, o, func(ctx context.Context, r request) (controller.Result, error) {
		b.mostCalls(&n)
		if call != nil {
			return call(ctx, r)
		}
		written := r.Object.DeepCopy()
		if written.Data != nil {
			return controller.Result{}, nil
		}
		written.Data = map[string]string{"written": "yes"}
		_, err := client.CoreV1().ConfigMaps("a").Update(ctx, written, metav1.UpdateOptions{})
		return controller.Result{}, err
	})
	if err != nil {
		return err
	}
	b.must(factory.Start(b.ctx))
	b.run(anHour, func(ctx context.Context) error { return ended(ctx, c.Run(ctx)) })
	if n.Load() == 0 {
		b.Error("there was no call in an hour")
	}
	if first, err := informer.Lister().Get("a/first"); call == nil && (err != nil || first.Data == nil) {
		b.Errorf("after an hour of calls the object has the data %v: %v", first.Data, err)
	}
	b.stop(factory.Shutdown)
	return nil
}

// ended returns the error with which something ended before ctx did.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, controller.ErrCallsRunning) {
		return nil
	}
	return err
}

func useManager(b *bubble, o any) error {
	b.must(b.start(apisim.Options{}))
	factory, err := tidings.NewFactory(b.server.Config(), tidings.FactoryOptions{Logger: discard})
	b.must(err)
	m, err := controller.NewManager(factory, *o.(*controller.ManagerOptions))
	if err != nil {
		return err
	}
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	b.must(err)
	c, err := controller.New(informer, controller.Options[*corev1.ConfigMap]{Name: "test", Logger: discard},
		func(context.Context, request) (controller.Result, error) { return controller.Result{}, nil })
	b.must(err)
	b.must(m.AddController(c))
	time.AfterFunc(30*time.Second, func() {
		answer := httptest.NewRecorder()
		m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/livez", nil))
		if answer.Code != http.StatusOK {
			b.Errorf("/livez answers %d: %s", answer.Code, answer.Body)
		}
	})
	b.run(time.Minute, func(ctx context.Context) error { return ended(ctx, m.Run(ctx)) })
	return nil
}

func useElection(b *bubble, o any) error {
	b.must(b.start(apisim.Options{}))
	e, err := election.New(b.server.Config(), *o.(*election.Options))
	if err != nil {
		return err
	}
	led := false
	b.run(10*time.Minute, func(ctx context.Context) error {
		return ended(ctx, e.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			led = true
			<-ctx.Done()
			return nil
		}))
	})
	if !led {
		b.Error("it was no leader in ten minutes")
	}
	return nil
}

func useGroup(b *bubble, o any) error {
	b.must(b.start(apisim.Options{}))
	slots := controller.NewSlots(controller.ByNamespace)
	guard, err := controller.NewGuard(b.server.Config(), controller.GuardOptions{})
	b.must(err)
	factory, err := tidings.NewFactory(b.server.Config(), tidings.FactoryOptions{Logger: discard})
	b.must(err)
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Slots: slots.Held()})
	b.must(err)
	var n atomic.Int64
	c, err := controller.New(informer, controller.Options[*corev1.ConfigMap]{Name: "test", Guard: guard, Slots: slots, Logger: discard},
		func(context.Context, request) (controller.Result, error) {
			b.mostCalls(&n)
			return controller.Result{}, nil
		})
	b.must(err)
	ctx, leave := context.WithCancel(b.ctx)
	defer leave()
	group, err := shard.Join(ctx, b.server.Config(), slots, *o.(*shard.Options))
	if err != nil {
		return err
	}
	b.must(factory.Start(b.ctx))
	run := make(chan error, 1)
	go func() { run <- c.Run(ctx) }()
	time.Sleep(10 * time.Minute)
	leave()
	left := make(chan error, 1)
	go func() { left <- group.Wait() }()
	for _, end := range []chan error{left, run} {
		select {
		case <-end:
		case <-time.After(anHour):
			b.Error("it does not leave within an hour")
		}
	}
	if n.Load() == 0 {
		b.Error("there was no call in ten minutes")
	}
	b.stop(factory.Shutdown)
	return nil
}

// read returns a source of config maps.
func (b *bubble) read() *source.REST[*corev1.ConfigMap] {
	b.must(b.start(apisim.Options{}))
	client, err := source.NewClient(b.server.Config(), nil)
	b.must(err)
	return source.NewTyped(client, asMap, func() *corev1.ConfigMap { return new(corev1.ConfigMap) }, source.RESTOptions{})
}

func useListOptions(b *bubble, o any) error {
	page, err := b.read().List(b.ctx, *o.(*source.ListOptions))
	if err == nil && len(page.Items) != 1 {
		b.Errorf("the list has %d objects", len(page.Items))
	}
	return err
}

func useWatchOptions(b *bubble, o any) error {
	ctx, stop := context.WithTimeout(b.ctx, anHour)
	defer stop()
	stream, err := b.read().Watch(ctx, *o.(*source.WatchOptions))
	if err != nil {
		return err
	}
	events, err := stream.Next()
	if err == nil && len(events) == 0 {
		b.Error("there are no events")
	}
	stream.Close() //nolint:errcheck // it is over
	return nil
}

// fault tries a fault of a server with a number.
func fault(f func(n int64) apisim.Fault) func(b *bubble, n int64) error {
	return func(b *bubble, n int64) error {
		b.must(b.start(apisim.Options{}))
		var made apisim.Fault
		if err := refused(func() { made = f(n) }); err != nil {
			return err
		}
		b.server.Inject(apisim.Match{Resource: "configmaps", Times: 2}, made)
		return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, n == math.MaxInt64)
	}
}

// ofFrame and ofTime are faults with one number.
func ofFrame(f func(frame int) apisim.Fault) func(b *bubble, n int64) error {
	return fault(func(n int64) apisim.Fault { return f(int(n)) })
}

func ofTime(f func(d time.Duration) apisim.Fault) func(b *bubble, n int64) error {
	return fault(func(n int64) apisim.Fault { return f(time.Duration(n)) })
}

// dropIn tries a resync period of a factory of the drop-ins.
func dropIn(informer func(b *bubble, resync time.Duration) cache.SharedIndexInformer) func(b *bubble, n int64) error {
	return func(b *bubble, n int64) error {
		b.must(b.start(apisim.Options{}))
		i := informer(b, time.Duration(n))
		var seen, updates atomic.Int64
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { seen.Add(1) },
			UpdateFunc: func(any, any) { b.mostCalls(&updates) },
		})
		b.must(err)
		b.run(time.Minute, func(ctx context.Context) error { i.RunWithContext(ctx); return nil })
		if seen.Load() != 1 {
			b.Errorf("the handler has seen %d objects", seen.Load())
		}
		return nil
	}
}

// parameters are functions of which a number is tried.
var parameters = map[string]func(b *bubble, n int64) error{
	"apisim.ApplyLater(d)":       ofTime(func(d time.Duration) apisim.Fault { return apisim.ApplyLater(d, 504) }),
	"apisim.ApplyLater(code)":    ofFrame(func(code int) apisim.Fault { return apisim.ApplyLater(time.Second, code) }),
	"apisim.CutAfter(frame)":     ofFrame(apisim.CutAfter),
	"apisim.CutBefore(frame)":    ofFrame(apisim.CutBefore),
	"apisim.CutLater(d)":         ofTime(apisim.CutLater),
	"apisim.CutWithin(frame)":    ofFrame(apisim.CutWithin),
	"apisim.Delay(d)":            ofTime(apisim.Delay),
	"apisim.Duplicate(frame)":    ofFrame(apisim.Duplicate),
	"apisim.Fail(code)":          ofFrame(func(code int) apisim.Fault { return apisim.Fail(1, code) }),
	"apisim.Fail(frame)":         ofFrame(func(frame int) apisim.Fault { return apisim.Fail(frame, 500) }),
	"apisim.FailLater(code)":     ofFrame(func(code int) apisim.Fault { return apisim.FailLater(time.Second, code) }),
	"apisim.FailLater(d)":        ofTime(func(d time.Duration) apisim.Fault { return apisim.FailLater(d, 500) }),
	"apisim.Garble(frame)":       ofFrame(apisim.Garble),
	"apisim.Inflate(bytes)":      ofFrame(func(n int) apisim.Fault { return apisim.Inflate(1, n) }),
	"apisim.Inflate(frame)":      ofFrame(func(frame int) apisim.Fault { return apisim.Inflate(frame, 1000) }),
	"apisim.Match.Nth(n)":        useNth,
	"apisim.Refuse(code)":        ofFrame(func(code int) apisim.Fault { return apisim.Refuse(code, 0) }),
	"apisim.Refuse(retryAfter)":  ofTime(func(d time.Duration) apisim.Fault { return apisim.Refuse(503, d) }),
	"apisim.RefuseApplied(code)": ofFrame(apisim.RefuseApplied),
	"apisim.Reorder(frame)":      ofFrame(apisim.Reorder),
	"apisim.Stall(d)":            ofTime(func(d time.Duration) apisim.Fault { return apisim.Stall(1, d) }),
	"apisim.Stall(frame)":        ofFrame(func(frame int) apisim.Fault { return apisim.Stall(frame, time.Minute) }),
	"apisim.Truncate(frame)":     ofFrame(apisim.Truncate),
	"apisim.Instance.SetLag(lag)": func(b *bubble, n int64) error {
		b.must(b.start(apisim.Options{}))
		instance := b.server.AddInstance()
		if err := refused(func() { instance.SetLag(time.Duration(n)) }); err != nil {
			return err
		}
		return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, false)
	},
	"clientgo/cache.NewSharedIndexInformer(defaultEventHandlerResyncPeriod)": dropIn(func(b *bubble, resync time.Duration) cache.SharedIndexInformer {
		client, err := kubernetes.NewForConfig(b.server.Config())
		b.must(err)
		lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", "a", fields.Everything())
		return cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, resync, nil)
	}),
	"clientgo/informers.NewSharedInformerFactory(defaultResync)": dropIn(func(b *bubble, resync time.Duration) cache.SharedIndexInformer {
		client, err := kubernetes.NewForConfig(b.server.Config())
		b.must(err)
		return informers.NewSharedInformerFactory(client, resync).Core().V1().ConfigMaps().Informer()
	}),
	"clientgo/dynamicinformer.NewDynamicSharedInformerFactory(defaultResync)": dropIn(func(b *bubble, resync time.Duration) cache.SharedIndexInformer {
		client, err := dynamic.NewForConfig(b.server.Config())
		b.must(err)
		return dynamicinformer.NewDynamicSharedInformerFactory(client, resync).ForResource(configMaps).Informer()
	}),
	"clientgo/metadatainformer.NewSharedInformerFactory(defaultResync)": dropIn(func(b *bubble, resync time.Duration) cache.SharedIndexInformer {
		client, err := metadata.NewForConfig(b.server.Config())
		b.must(err)
		return metadatainformer.NewSharedInformerFactory(client, resync).ForResource(configMaps).Informer()
	}),
	"controller.RetryAfter(d)": func(b *bubble, n int64) error {
		calls := 0
		return b.reconcile(calm, controller.GuardOptions{}, func(context.Context, request) (controller.Result, error) {
			if calls++; calls > 10 {
				return controller.Result{}, nil
			}
			return controller.Result{}, controller.RetryAfter(errors.New("it fails"), time.Duration(n))
		})
	},
	"controller.Controller.SetWorkers(n)": func(b *bubble, n int64) error {
		b.must(b.start(apisim.Options{}))
		factory, err := tidings.NewFactory(b.server.Config(), tidings.FactoryOptions{Logger: discard})
		b.must(err)
		informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		b.must(err)
		c, err := controller.New(informer, controller.Options[*corev1.ConfigMap]{Name: "test", Logger: discard},
			func(context.Context, request) (controller.Result, error) { return controller.Result{}, nil })
		b.must(err)
		if err := c.SetWorkers(int(n)); err != nil {
			return err
		}
		b.must(factory.Start(b.ctx))
		b.run(time.Minute, func(ctx context.Context) error { return ended(ctx, c.Run(ctx)) })
		b.stop(factory.Shutdown)
		return nil
	},
}

func useNth(b *bubble, n int64) error {
	b.must(b.start(apisim.Options{}))
	var match apisim.Match
	if err := refused(func() { match = apisim.Match{Resource: "configmaps"}.Nth(int(n)) }); err != nil {
		return err
	}
	b.server.Inject(match, apisim.Delay(time.Second))
	return b.follow(tidings.FactoryOptions{}, tidings.HandlerOptions{}, false)
}

// knownDefects are numbers that do not work, with the reason for which they are left.
var knownDefects = map[string]string{}
