package shard

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/internal/test/secrets"
)

// fleet is a server with objects, and processes whose controllers take part in one group.
type fleet struct {
	*world
	objects    int
	generation string // the generation of processes that join
	held       bool   // informers hold only the objects of their slots
	workers    int    // of a controller
	singles    int    // the number of controllers of a manager that are led singly; 0 is one with slots
	joined     []*replica
	printed    secrets.Output // what is logged and shown

	mu    sync.Mutex // guards the rest
	calls []*fleetCall
	// wrote has the version of the last write of a call, by key.
	wrote map[string]uint64
}

// fleetCall is a call of a controller.
type fleetCall struct {
	key, process string
	// ended is the time at which it returned or its context ended. Afterwards it writes nothing.
	// It is zero before that.
	began, ended time.Time
	reasons      []controller.Reason
	gone         bool
}

// replica is a process of a fleet.
type replica struct {
	*Group
	f        *fleet
	name     string
	server   *apisim.Instance
	client   kubernetes.Interface
	slots    *controller.Slots
	control  *controller.Controller[*corev1.ConfigMap]
	informer *tidings.Informer[*corev1.ConfigMap]
	manager  *controller.Manager // with fleet.singles
	stop     context.CancelFunc
	stopRun  context.CancelFunc // of the controller or the manager alone
	ended    chan error         // of the controller's Run, or the manager's

	mu sync.Mutex // guards the rest
	// takes is the duration of a call, and ignores reports whether the call runs on after the end
	// of its context.
	takes   time.Duration
	ignores bool
	// refused is the last error of a write that the guard has not sent.
	refused error
}

const fleetNamespaces = 24

func namespaceOf(i int) string { return fmt.Sprintf("team-%03d", i%fleetNamespaces) }

// inFleet runs a test in a bubble with a server of objects, and checks the calls at the end: with
// informers of all objects, and with those of slots.
func inFleet(t *testing.T, objects int, test func(f *fleet)) {
	t.Helper()
	for name, held := range map[string]bool{"all objects": false, "slots": true} {
		t.Run(name, func(t *testing.T) { inOneFleet(t, objects, held, test) })
	}
}

func inOneFleet(t *testing.T, objects int, held bool, test func(f *fleet)) {
	inFleetOf(t, objects, apisim.Options{}, func(f *fleet) {
		f.held = held
		test(f)
	})
}

// inFleetOf is inFleet with a server with other options, and informers that the test chooses.
func inFleetOf(t *testing.T, objects int, o apisim.Options, test func(f *fleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, objects, o)
		test(f)
		f.checkCalls()
		for _, r := range f.joined {
			f.printed.Print(r.Health(), r.informer.Health())
		}
		f.printed.Check(t, 1000)
	})
}

func newFleet(t *testing.T, objects int, o apisim.Options) *fleet {
	t.Helper()
	f := &fleet{world: newWorld(t, o), objects: objects, workers: 64, wrote: map[string]uint64{}}
	for i := range fleetNamespaces {
		f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}})
	}
	for i := range objects {
		f.create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(i), Name: fmt.Sprint("c", i)},
			Data:       map[string]string{"content": secrets.Content},
		})
	}
	return f
}

func (f *fleet) create(obj runtime.Object) {
	f.Helper()
	if _, err := apisim.Create(f.Context(), f.server, obj); err != nil {
		f.Fatal(err)
	}
}

func must[V any](f *fleet) func(V, error) V {
	return func(value V, err error) V {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
		return value
	}
}

// join starts a process until stop, or the end of the test.
func (f *fleet) join(name string, by slot.Key) *replica {
	f.Helper()
	r := &replica{f: f, name: name, server: f.server.AddInstance(), ended: make(chan error, 1),
		slots: controller.NewSlots(by)}
	f.joined = append(f.joined, r)
	config := r.server.Config()
	config.UserAgent, config.QPS = name, -1
	config.BearerToken = secrets.Token
	logger := slog.New(slog.NewTextHandler(&f.printed, &slog.HandlerOptions{Level: slog.LevelDebug}))
	factory := must[*tidings.Factory](f)(tidings.NewFactory(config, tidings.FactoryOptions{Logger: logger}))
	selection := tidings.Selection{}
	if f.held {
		selection.Slots = r.slots.Held()
	}
	r.informer = must[*tidings.Informer[*corev1.ConfigMap]](f)(
		tidings.For[*corev1.ConfigMap](factory, selection))
	guard := must[*controller.Guard](f)(controller.NewGuard(config, controller.GuardOptions{}))
	r.client = must[kubernetes.Interface](f)(kubernetes.NewForConfig(guard.Config()))
	if f.singles > 0 {
		r.manage(factory, guard)
	} else {
		r.control = must[*controller.Controller[*corev1.ConfigMap]](f)(controller.New(r.informer,
			controller.Options[*corev1.ConfigMap]{
				Name: "counter", Workers: f.workers, Guard: guard, Slots: r.slots, Logger: logger,
			}, r.reconcile))
	}
	leases := f.server.Config()
	leases.UserAgent, leases.BearerToken = name, name
	r.Group = must[*Group](f)(newGroup(leases, r.slots, Options{
		Namespace: "ops", Name: "rollout", Identity: name, Logger: logger, Generation: f.generation,
	}))
	r.clock = lease.Clock{Boot: func() time.Duration { return 0 }}
	r.start()
	ctx, stop := context.WithCancel(f.Context())
	informers, stopInformers := context.WithCancel(context.Background())
	r.stop = stop
	if err := factory.Start(informers); err != nil {
		f.Fatal(err)
	}
	go r.run(ctx)
	running, stopRun := context.WithCancel(ctx)
	r.stopRun = stopRun
	go func() {
		if r.manager != nil {
			r.ended <- r.manager.Run(running)
		} else {
			r.ended <- r.control.Run(running)
		}
	}()
	f.Cleanup(func() {
		stop()
		stopRun()
		<-r.done
		<-r.ended
		stopInformers()
		if err := factory.Shutdown(context.Background()); err != nil {
			f.Error(err)
		}
		guard.SetDefaultTerm(nil)
	})
	return r
}

// reconcile counts its calls in the object. It checks that it begins with the last write of any
// process, and that no other call of the key runs.
func (r *replica) reconcile(
	ctx context.Context, q controller.Request[*corev1.ConfigMap],
) (controller.Result, error) {
	f, c := r.f, &fleetCall{key: q.Key, process: r.name, began: time.Now(), reasons: q.Reasons, gone: q.Gone}
	known := q.Object
	if q.Gone {
		known = q.Last
	}
	version, err := strconv.ParseUint(known.ResourceVersion, 10, 64)
	f.mu.Lock()
	if err != nil || !q.Gone && version < f.wrote[q.Key] {
		f.Errorf("a call of %s by %s begins with version %d, and %d was written before", q.Key, r.name,
			version, f.wrote[q.Key])
	}
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	end := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if c.ended.IsZero() {
			c.ended = time.Now()
		}
	}
	defer end()
	defer context.AfterFunc(ctx, end)()
	r.mu.Lock()
	takes, ignores := r.takes, r.ignores
	r.mu.Unlock()
	if ignores {
		ctx = context.WithoutCancel(ctx)
	}
	if takes > 0 {
		lease.Sleep(ctx, takes)
	}
	if q.Gone {
		return controller.Result{}, nil
	}
	next := q.Object.DeepCopy()
	if next.Data["seen"] == next.Data["asked"] && next.Data["by"] == r.name {
		return controller.Result{}, nil
	}
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	next.Data["seen"], next.Data["by"] = next.Data["asked"], r.name
	got, err := r.client.CoreV1().ConfigMaps(q.Namespace()).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused = err
		return controller.Result{}, err
	}
	version, err = strconv.ParseUint(got.ResourceVersion, 10, 64)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrote[q.Key] = max(f.wrote[q.Key], version)
	return controller.Result{}, err
}

// set changes the behaviour of the calls of a process.
func (r *replica) set(change func(*replica)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// checkCalls checks that no two calls of a key ran at a time.
func (f *fleet) checkCalls() {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	last := map[string]*fleetCall{}
	for _, c := range f.calls { // in the order in which they began
		if before := last[c.key]; before != nil && (before.ended.IsZero() || before.ended.After(c.began)) {
			f.Errorf("%s calls %s at %v, while %s calls it from %v to %v", c.process, c.key, c.began,
				before.process, before.began, before.ended)
		}
		last[c.key] = c
	}
}

// served waits until the controllers serve all slots, and returns the time until then.
func (f *fleet) served(replicas ...*replica) time.Duration {
	f.Helper()
	began := time.Now()
	for range 3000 {
		synctest.Wait()
		n := 0
		for _, r := range replicas {
			n += r.serves().Len()
		}
		if n == Count {
			return time.Since(began)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, r := range replicas {
		f.Logf("%s: %+v %+v", r.name, r.Health(), r.control.Health())
	}
	f.Fatal("not all slots are served after minutes")
	return 0
}

// serves returns the slots that the controller reports as served.
func (r *replica) serves() Set {
	return slotsOf(r.slots.Work().Ready)
}

// ask changes an object, which leads to a call.
func (f *fleet) ask(i, number int) {
	f.Helper()
	obj, err := f.server.Get(f.Context(), corev1.SchemeGroupVersion.WithResource("configmaps"),
		namespaceOf(i), fmt.Sprint("c", i))
	if err != nil {
		f.Fatal(err)
	}
	next := obj.(*corev1.ConfigMap).DeepCopy()
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	next.Data["asked"] = fmt.Sprint(number)
	if _, err := apisim.Update(f.Context(), f.server, next); err != nil {
		f.Fatal(err)
	}
}

// since returns the calls that have begun since a point in time, by key.
func (f *fleet) since(at time.Time) map[string][]*fleetCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := map[string][]*fleetCall{}
	for _, c := range f.calls {
		if !c.began.Before(at) {
			calls[c.key] = append(calls[c.key], c)
		}
	}
	return calls
}

// two starts processes and waits until they share the objects.
func (f *fleet) two(by slot.Key) (a, b *replica) {
	f.Helper()
	a = f.join("a", by)
	f.served(a)
	b = f.join("b", by)
	time.Sleep(time.Minute)
	f.served(a, b)
	members := a.Health().Members
	if len(members) != 2 || members[0].Weight < members[1].Weight/2 || members[1].Weight < members[0].Weight/2 {
		f.Fatalf("the members are %+v", members)
	}
	return a, b
}

// callsSince returns the number of calls that have begun since a point in time.
func (f *fleet) callsSince(at time.Time) (n int) {
	for _, calls := range f.since(at) {
		n += len(calls)
	}
	return n
}
