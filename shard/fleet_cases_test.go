package shard

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

// TestS1_BusyControllersKeepTheirSlots has two replicas by UID, one a fifth faster than the other.
// All objects change at once, which is work for about fifteen minutes. Each key has about two
// calls: its change, and the echo of its write.
func TestS1_BusyControllersKeepTheirSlots(t *testing.T) {
	inOneFleet(t, 1200, true, func(f *fleet) {
		f.workers = 24
		a, b := f.two(controller.ByUID)
		time.Sleep(time.Minute)
		f.served(a, b)
		a.set(func(r *replica) { r.takes = 20 * time.Second })
		b.set(func(r *replica) { r.takes = 16 * time.Second })
		before := a.Health().Moves.Out + b.Health().Moves.Out
		asked := time.Now()
		f.askAll(1)
		time.Sleep(10 * time.Minute)
		if h := a.Health(); h.Covered != 1 {
			t.Errorf("the health is %+v", h)
		}
		time.Sleep(30 * time.Minute)
		moved, calls := a.Health().Moves.Out+b.Health().Moves.Out-before, f.callsSince(asked)
		if moved > 0 || calls > 3*f.objects || calls < f.objects {
			t.Errorf("%d slots moved, %d calls for %d changes", moved, calls, f.objects)
		}
		for _, r := range []*replica{a, b} {
			r.set(func(r *replica) { r.takes = 0 })
		}
	})
}

// TestS2_AJoinBesideLongCalls: one call per namespace runs for 15 minutes; then b joins. Other
// objects of the same namespaces change all the time: their calls wait for a second at most.
func TestS2_AJoinBesideLongCalls(t *testing.T) {
	inOneFleet(t, 4*fleetNamespaces, true, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.served(a)
		time.Sleep(time.Minute)
		a.set(func(r *replica) { r.takes = 15 * time.Minute })
		for i := range fleetNamespaces {
			f.ask(i, 1)
		}
		time.Sleep(100 * time.Millisecond)
		a.set(func(r *replica) { r.takes = 0 })
		time.Sleep(10 * time.Second)
		b := f.join("b", controller.ByNamespace)
		type asked struct {
			key string
			at  time.Time
		}
		var all []asked
		for n := range 120 { // ten minutes
			for i := fleetNamespaces; i < 2*fleetNamespaces; i++ {
				all = append(all, asked{fmt.Sprint(namespaceOf(i), "/c", i), time.Now()})
				f.ask(i, 2+n)
			}
			time.Sleep(5 * time.Second)
			if h := a.Health(); h.Covered != 1 {
				t.Fatalf("after %d s: %+v", 5*n, h)
			}
		}
		time.Sleep(time.Minute)
		late, longest, calls := 0, time.Duration(0), f.since(all[0].at)
		for _, q := range all {
			for _, c := range calls[q.key] {
				if waited := c.began.Sub(q.at); waited >= 0 {
					longest = max(longest, waited)
					if waited > 1100*time.Millisecond { // the watch needs some of it
						late++
					}
					break
				}
			}
		}
		if late > 0 {
			t.Errorf("%d of %d calls waited for up to %v while b joined", late, len(all), longest)
		}
		time.Sleep(15 * time.Minute)
		f.served(a, b)
		if h := a.Health(); h.Moving != 0 || b.informer.Lister().Len() < f.objects/3 {
			t.Errorf("b holds %d objects: %+v", b.informer.Lister().Len(), h)
		}
	})
}

// TestS1_AJoinBesideBusyControllers: 256 objects, by UID, each of which changes every two seconds.
// a is alone for five minutes, then b joins: it gets half of them, and never more.
func TestS1_AJoinBesideBusyControllers(t *testing.T) {
	inOneFleet(t, 256, true, func(f *fleet) {
		a := f.join("a", controller.ByUID)
		f.served(a)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for n := 1; ; n++ {
				for i := range f.objects {
					f.ask(i, n)
					if i%16 != 15 {
						continue
					}
					select {
					case <-stop:
						return
					case <-time.After(2 * time.Second / 16):
					}
				}
			}
		}()
		time.Sleep(time.Minute)
		b := f.join("b", controller.ByUID)
		most := 0
		for range 60 {
			time.Sleep(time.Second)
			most = max(most, b.informer.Lister().Len())
		}
		close(stop)
		<-done
		f.served(a, b)
		if most > 135 || b.informer.Lister().Len() < 110 {
			t.Errorf("b held up to %d of 256 objects, and holds %d", most, b.informer.Lister().Len())
		}
		if h := a.Health(); h.Moves.Out != b.Health().Moves.In || h.Moves.In != Count {
			t.Errorf("a: %+v, b: %+v", h.Moves, b.Health().Moves)
		}
	})
}

// program runs the program of docs/guides/scale.md: one context for Join, factory.Start and c.Run,
// and main ends when Run has returned. No request of the process arrives afterwards. With a manager
// it is a program for one replica with three more names.
func (f *fleet) program(name string, managed bool) *replica {
	f.Helper()
	r := &replica{f: f, name: name, server: f.server.AddInstance(), ended: make(chan error, 1),
		slots: controller.NewSlots(controller.ByNamespace)}
	config := r.server.Config()
	config.UserAgent, config.QPS = name, -1
	silent := slog.New(slog.DiscardHandler)
	factory := must[*tidings.Factory](f)(tidings.NewFactory(config, tidings.FactoryOptions{Logger: silent}))
	r.informer = must[*tidings.Informer[*corev1.ConfigMap]](f)(
		tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Slots: r.slots.Held()}))
	guard := must[*controller.Guard](f)(controller.NewGuard(config, controller.GuardOptions{}))
	r.client = must[kubernetes.Interface](f)(kubernetes.NewForConfig(guard.Config()))
	r.control = must[*controller.Controller[*corev1.ConfigMap]](f)(controller.New(r.informer,
		controller.Options[*corev1.ConfigMap]{
			Name: "counter", Workers: 16, Guard: guard, Slots: r.slots, Logger: silent,
		}, r.reconcile))
	if managed {
		r.manager = must[*controller.Manager](f)(controller.NewManager(factory,
			controller.ManagerOptions{Guard: guard, Logger: silent}))
		if err := r.manager.AddController(r.control); err != nil {
			f.Fatal(err)
		}
	}
	leases := f.server.Config()
	leases.UserAgent, leases.BearerToken = name, name
	r.Group = must[*Group](f)(newGroup(leases, r.slots, Options{
		Namespace: "ops", Name: "rollout", Identity: name, Logger: silent,
	}))
	r.clock = lease.Clock{Boot: func() time.Duration { return 0 }}
	r.start()
	ctx, stop := context.WithCancel(f.Context())
	r.stop = stop
	go r.run(ctx) // Join
	go func() {
		var err error
		if managed {
			err = r.manager.Run(ctx)
		} else {
			if err := factory.Start(ctx); err != nil {
				f.Error(err)
			}
			err = r.control.Run(ctx)
		}
		f.server.Inject(apisim.Match{UserAgent: name}, apisim.Drop()) // main returns
		r.ended <- err
	}()
	f.Cleanup(func() {
		stop()
		<-r.done
		if err := <-r.ended; err != nil {
			f.Errorf("%s: %v", name, err)
		}
		if err := factory.Shutdown(context.Background()); err != nil {
			f.Error(err)
		}
		guard.SetDefaultTerm(nil)
	})
	return r
}

// TestS2_TheProgramOfTheGuideEndsInOrder: calls take half a second, and objects change all the
// time. A slot has no calls for a second at most.
func TestS2_TheProgramOfTheGuideEndsInOrder(t *testing.T) {
	for name, managed := range map[string]bool{"one controller": false, "a manager": true} {
		t.Run(name, func(t *testing.T) {
			inFleetOf(t, 96, apisim.Options{}, func(f *fleet) {
				f.held = true
				a := f.program("a", managed)
				f.served(a)
				b := f.join("b", controller.ByNamespace)
				time.Sleep(time.Minute)
				f.served(a, b)
				a.set(func(r *replica) { r.takes = 500 * time.Millisecond })
				b.set(func(r *replica) { r.takes = 500 * time.Millisecond })
				go func() {
					for n := range 200 {
						for i := 0; i < f.objects; i += 7 {
							f.ask(i, n)
						}
						time.Sleep(100 * time.Millisecond)
					}
				}()
				time.Sleep(5 * time.Second)
				left := time.Now()
				a.stop() // SIGTERM
				longest := time.Duration(0)
				for gone := time.Now(); time.Since(left) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
					if a.serves().Len()+b.serves().Len() == Count {
						gone = time.Now()
					}
					longest = max(longest, time.Since(gone))
				}
				if f.served(b); longest > 1500*time.Millisecond {
					t.Errorf("an orderly end left slots without calls for %v", longest)
				}
				if err := a.Wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestS4_TheEndOfOneRunLeavesTheGroup: the context of Join goes on.
func TestS4_TheEndOfOneRunLeavesTheGroup(t *testing.T) {
	inOneFleet(t, 48, true, func(f *fleet) {
		a, b := f.two(controller.ByNamespace)
		left := time.Now()
		a.stopRun()
		f.wantBetween("the hand-over", f.served(b), 0, 2*time.Second)
		if err := a.Wait(); err != nil {
			t.Error(err)
		}
		f.wantBetween("the leave", time.Since(left), 0, 3*time.Second)
		if h := a.Health(); h.State != Stopped {
			t.Errorf("the state is %v", h.State)
		}
	})
}

// TestS5_AMemberWhoseOnlyWorkerHangs moves its slots once: it takes none before the call has ended,
// although no key waits for it any more.
func TestS5_AMemberWhoseOnlyWorkerHangs(t *testing.T) {
	inOneFleet(t, fleetNamespaces, true, func(f *fleet) { // one for each slot
		f.workers = 1
		a, b := f.two(controller.ByNamespace)
		for i := range f.objects {
			if b.serves().Has(controller.ByNamespace.Of("", namespaceOf(i))) {
				b.set(func(r *replica) { r.takes = 2 * time.Hour })
				f.ask(i, 1)
				break
			}
		}
		time.Sleep(time.Second)
		b.set(func(r *replica) { r.takes = 0 })
		before := a.Map()
		f.askAll(2)
		time.Sleep(50 * time.Minute)
		moves, most := 0, uint64(0)
		for i, e := range a.Map() {
			n := e.Epoch - before[i].Epoch
			moves, most = moves+int(n), max(most, n)
		}
		if moves == 0 || most > 1 {
			t.Errorf("%d moves, up to %d of a slot: %+v", moves, most, a.Health().Members)
		}
	})
}

// TestS5_OpenSlotsAreSaidAtOnce, with the weights that the plan needs: not five seconds later, with
// the next renewal.
func TestS5_OpenSlotsAreSaidAtOnce(t *testing.T) {
	for range 5 {
		inOneFleet(t, 96, true, func(f *fleet) {
			a := f.join("a", controller.ByNamespace)
			f.served(a)
			time.Sleep(looks)
			weights := uint64(0)
			for _, e := range a.Map() {
				weights += uint64(e.Weight)
			}
			if h := a.Health(); h.Covered != 1 || weights < uint64(objectWeight*f.objects) {
				t.Errorf("%v of the slots are covered, and the weight is %d: %s", h.Covered, weights, h.NotReady)
			}
		})
	}
}
