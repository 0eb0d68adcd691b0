package contract_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
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

// knownDefects are numbers that do not work, with the reason for which they are left.
var knownDefects = map[string]string{}
