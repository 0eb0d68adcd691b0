package shard

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

const managedControllers = 6

// inManagedFleet runs a test in which each process has a manager of controllers that are led
// singly.
func inManagedFleet(t *testing.T, test func(f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 48, apisim.Options{})
		f.singles = managedControllers
		test(f)
		f.checkCalls()
	})
}

// manage gives a process a manager. Its controllers divide the objects among them.
func (r *replica) manage(factory *tidings.Factory, guard *controller.Guard) {
	f := r.f
	r.manager = must[*controller.Manager](f)(controller.NewManager(factory, controller.ManagerOptions{
		Guard: guard, Slots: r.slots, Logger: slog.New(slog.DiscardHandler),
		OnStragglers: func(error) {},
	}))
	for k := range f.singles {
		c := must[*controller.Controller[*corev1.ConfigMap]](f)(controller.New(r.informer,
			controller.Options[*corev1.ConfigMap]{
				Name: fmt.Sprint("k", k), Workers: 64, Guard: guard, Logger: slog.New(slog.DiscardHandler),
			}, func(ctx context.Context, q controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
				if controllerOf(q.Key) != k {
					return controller.Result{}, nil
				}
				return r.reconcile(ctx, q)
			}))
		if err := r.manager.AddController(c); err != nil {
			f.Fatal(err)
		}
	}
}

// controllerOf returns the controller that an object belongs to, in all generations.
func controllerOf(key string) int {
	_, name, _ := strings.Cut(key, "/c")
	i := 0
	fmt.Sscan(name, &i) //nolint:errcheck // the names are made by the test
	return i % (managedControllers - 1)
}

// leads returns the controllers that a process leads, and that are in order.
func (r *replica) leads() (names []string) {
	work := r.slots.Work()
	for n, name := range work.Controllers {
		if work.Ready.Has(Count + n) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// led waits until each controller is led by one of some processes, and returns the time until
// then.
func (f *fleet) led(replicas ...*replica) time.Duration {
	f.Helper()
	began := time.Now()
	for range 6000 {
		synctest.Wait()
		led := map[string]int{}
		for _, r := range replicas {
			for _, name := range r.leads() {
				led[name]++
			}
		}
		if len(led) == f.singles {
			return time.Since(began)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, r := range replicas {
		f.Logf("%s leads %v: %+v %+v", r.name, r.leads(), r.Health(), r.manager.Health())
	}
	f.Fatal("not all controllers are led after minutes")
	return 0
}

// three starts processes and waits until they share the controllers.
func (f *fleet) threeManagers() (a, b, c *replica) {
	f.Helper()
	a = f.join("a", controller.ByNamespace)
	f.led(a)
	b, c = f.join("b", controller.ByNamespace), f.join("c", controller.ByNamespace)
	time.Sleep(time.Minute)
	f.led(a, b, c)
	for _, r := range []*replica{a, b, c} {
		if n := len(r.leads()); n != f.singles/3 {
			f.Fatalf("%s leads %v", r.name, r.leads())
		}
	}
	return a, b, c
}

// askAll changes all objects.
func (f *fleet) askAll(number int) {
	for i := range f.objects {
		f.ask(i, number)
	}
}

// wantCalled checks that each object had a call by one of some processes since a point in time. It
// returns the time from then until the last of these first calls began.
func (f *fleet) wantCalled(since time.Time, processes ...string) (last time.Duration) {
	f.Helper()
	calls := f.since(since)
	for i := range f.objects {
		key := fmt.Sprint(namespaceOf(i), "/c", i)
		n := slices.IndexFunc(calls[key], func(c *fleetCall) bool { return slices.Contains(processes, c.process) })
		if n < 0 {
			f.Errorf("%s is not called", key)
			continue
		}
		last = max(last, calls[key][n].began.Sub(since))
	}
	return last
}

func TestS1_MembersShareControllers(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a, b, c := f.threeManagers()
		asked := time.Now()
		f.askAll(1)
		time.Sleep(10 * time.Second)
		f.wantCalled(asked, "a", "b", "c")
		var names []string
		for _, m := range b.Health().Members {
			names = append(names, m.Controllers...)
		}
		if slices.Sort(names); !slices.Equal(names, []string{"k0", "k1", "k2", "k3", "k4", "k5"}) {
			t.Errorf("the controllers are %v", names)
		}
		entries := slices.DeleteFunc(c.Map(), func(e Entry) bool { return e.Controller == "" })
		if len(entries) != f.singles || entries[0].Controller != "k0" || entries[0].Cover != Covered ||
			entries[0].Age == 0 {
			t.Errorf("the entries are %+v", entries)
		}
		if h := a.Health(); h.Covered != 1 || h.Nobody != "" {
			t.Errorf("the health is %+v", h)
		}
		stopped := time.Now()
		for _, r := range []*replica{a, b, c} { // the last process has no heir
			r.stop()
		}
		for _, r := range []*replica{a, b, c} {
			if err := <-r.ended; err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
			r.ended <- nil
		}
		f.wantBetween("the stop", time.Since(stopped), 0, 3*time.Second)
	})
}

// TestS2_AHandOverOfControllers has a member that leaves while its calls run: the caches of the
// next owners lag.
func TestS2_AHandOverOfControllers(t *testing.T) {
	for _, lag := range []time.Duration{0, 3 * time.Second} {
		t.Run(lag.String(), func(t *testing.T) {
			inManagedFleet(t, func(f *fleet) {
				const takes = 500 * time.Millisecond
				a, b, c := f.threeManagers()
				a.set(func(a *replica) { a.takes = takes })
				b.server.SetLag(lag)
				c.server.SetLag(lag)
				f.askAll(1)
				time.Sleep(lag + 100*time.Millisecond)
				gone := a.leads()
				left := time.Now()
				f.askAll(2)
				a.stop()
				f.led(b, c)
				time.Sleep(lag + 10*time.Second)
				f.wantBetween("the last first call", f.wantCalled(left, "b", "c"), 0, takes+time.Second+lag)
				if err := a.Wait(); err != nil {
					t.Error(err)
				}
				if h := b.Health(); h.Covered != 1 || len(gone) != 2 {
					t.Errorf("a led %v; the health is %+v", gone, h)
				}
			})
		})
	}
}

func TestS3_TheControllersOfACrashedMemberAreLedInTime(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a, b, c := f.threeManagers()
		a.set(func(a *replica) { a.takes = time.Minute })
		f.askAll(1)
		time.Sleep(time.Second)
		crashed := time.Now()
		f.server.Inject(apisim.Match{UserAgent: "a"}, apisim.Drop())
		f.led(b, c)
		f.wantBetween("the take-over", time.Since(crashed), duration*2/3, takeOverBound)
		time.Sleep(time.Second)
		f.wantBetween("the last first call", f.wantCalled(crashed.Add(-time.Second), "b", "c"), 0,
			duration+4*time.Second)
	})
}

// TestS3_AManagerThatWasPausedTakesPartAgain delays the renewals of a process for a minute.
func TestS3_AManagerThatWasPausedTakesPartAgain(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a, b, c := f.threeManagers()
		pause := f.server.Inject(by("a", ""), apisim.Delay(time.Minute))
		time.Sleep(2 * duration)
		f.led(b, c)
		if names := a.leads(); len(names) > 0 {
			t.Errorf("a leads %v", names)
		}
		time.Sleep(30 * time.Second)
		pause.Lift()
		time.Sleep(time.Minute)
		f.led(a, b, c)
		if names := a.leads(); len(names) != 2 {
			t.Errorf("a leads %v", names)
		}
	})
}

// TestS2_AControllerWhoseCallsRunLongIsLedOn, and moves once they have ended.
func TestS2_AControllerWhoseCallsRunLongIsLedOn(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.led(a)
		a.set(func(a *replica) { a.takes, a.ignores = 90*time.Second, true })
		f.askAll(1)
		time.Sleep(time.Second)
		b := f.join("b", controller.ByNamespace)
		time.Sleep(time.Minute)
		if names := b.leads(); len(names) > 0 {
			t.Errorf("b leads %v while calls run", names)
		}
		a.set(func(a *replica) { a.takes, a.ignores = 0, false })
		time.Sleep(5 * time.Minute)
		f.led(a, b)
		if h := a.Health(); len(b.leads()) != 3 {
			t.Errorf("b leads %v: %+v", b.leads(), h)
		}
		asked := time.Now()
		f.askAll(2)
		time.Sleep(10 * time.Second)
		f.wantCalled(asked, "a", "b")
	})
}

// TestS4_ControllersThatComeAndGoWithAGeneration: the newer program has one more controller, and
// lacks another.
func TestS4_ControllersThatComeAndGoWithAGeneration(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.led(a)
		f.generation, f.singles = "2", managedControllers-1
		b := f.join("b", controller.ByNamespace)
		time.Sleep(time.Minute)
		if names := b.leads(); len(names) > 0 {
			t.Errorf("b leads %v beside the older generation", names)
		}
		a.stop()
		f.led(b)
		time.Sleep(time.Minute)
		led := map[string]bool{}
		for _, e := range b.Map() {
			if e.Controller != "" {
				led[e.Controller] = e.Cover == Covered
			}
		}
		want := map[string]bool{"k0": true, "k1": true, "k2": true, "k3": true, "k4": true}
		if h := b.Health(); !maps.Equal(led, want) || h.Covered != 1 {
			t.Errorf("the controllers are %v: %+v", led, h)
		}
		f.generation, f.singles = "3", managedControllers+1
		c := f.join("c", controller.ByNamespace)
		time.Sleep(time.Minute)
		b.stop()
		f.led(c)
	})
}
