package controller_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// checkReasons checks that the only reason of some entries begins and ends with two texts.
func checkReasons(t *testing.T, work slot.Work, of slot.Set, begin, end string) {
	t.Helper()
	for reason, entries := range work.Reasons {
		if entries != of || !strings.HasPrefix(reason, begin) || !strings.HasSuffix(reason, end) || !work.Ready.And(of).IsEmpty() {
			t.Errorf("%v are not ready because %q", entries, reason)
		}
	}
	if len(work.Reasons) != 1 {
		t.Errorf("the reasons are %v", work.Reasons)
	}
}

// TestS5_WhyAnEntryIsNotReady refuses the lists of an informer before it is synced, and later those in a
// namespace of it.
func TestS5_WhyAnEntryIsNotReady(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		c := control(w, informerIn[*corev1.ConfigMap](w, "a", "b"), options{Slots: s}, nothing)
		refused := w.server.Inject(apisim.Match{Resource: "configmaps"}, apisim.Refuse(http.StatusForbidden, 0))
		if work := s.Work(); work.Started || len(work.Reasons) > 0 {
			t.Errorf("the work is %+v", work)
		}
		stop, term := start(w, c), newTerm()
		s.Begin(term)
		warmed := runsUntil(func() error { return s.Warm(w.ctx, slotsOf("a")) })
		time.Sleep(50 * time.Second)
		work := s.Work()
		grant := `(grant list and watch on configmaps.v1 in namespace "a")`
		checkReasons(t, work, slotsOf("a"), `informer "configmaps.v1 [in a,b]" is not synced: `, grant)
		if !work.Started || len(work.Lacks) > 0 {
			t.Errorf("the work is %+v", work)
		}
		time.Sleep(20 * time.Second)
		if lacks := s.Work().Lacks; !slices.Equal(lacks, []string{"test"}) {
			t.Errorf("it lacks %q", lacks)
		}
		refused.Lift()
		fatal(t, <-warmed)
		s.Serve(owned(slotsOf("a", "b")))
		time.Sleep(5 * time.Minute)
		if work := s.Work(); len(work.Reasons)+len(work.Lacks) > 0 || work.Ready != slotsOf("a", "b") {
			t.Errorf("the work is %+v", work)
		}
		liftA := refuseIn(w, "configmaps", "a")
		time.Sleep(70 * time.Second)
		work = s.Work()
		checkReasons(t, work, slotsOf("a"), `informer "configmaps.v1 [in a,b]" fails in namespace "a": `, grant)
		if len(work.Lacks) > 0 || work.Ready != slotsOf("b") {
			t.Errorf("the work is %+v", work)
		}
		liftB := refuseIn(w, "configmaps", "b")
		time.Sleep(70 * time.Second)
		if lacks := s.Work().Lacks; !slices.Equal(lacks, []string{"test"}) {
			t.Errorf("with all of the informer, it lacks %q", lacks)
		}
		liftA()
		liftB()
		time.Sleep(10 * time.Minute)
		term.end(fmt.Errorf("the Lease is lost"))
		checkReasons(t, s.Work(), slotsOf("a", "b"), `controller "test" has not started`, "")
		fatal(t, stop())
	})
}

// TestS5_WhySlotsAreNotWarm: the list of slots that come takes a minute.
func TestS5_WhySlotsAreNotWarm(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		held, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Slots: s.Held()})
		fatal(t, err)
		stop := start(w, control(w, held, options{Slots: s}, nothing))
		s.Begin(newTerm())
		fill(w.ctx, t, s, slotsOf("a"))
		s.Serve(owned(slotsOf("a")))
		w.server.Inject(apisim.Match{Resource: "configmaps", Verb: "list"}, apisim.Delay(time.Minute))
		warmed := runsUntil(func() error { return s.Warm(w.ctx, slotsOf("b")) })
		time.Sleep(10 * time.Second)
		work := s.Work()
		checkReasons(t, work, slotsOf("b"), `informer "configmaps.v1 [slots by namespace]" lists the objects of slots: `, "Watching")
		if work.Ready != slotsOf("a") {
			t.Errorf("ready are %v", work.Ready)
		}
		fatal(t, <-warmed)
		if work := s.Work(); len(work.Reasons) > 0 {
			t.Errorf("the reasons are %v", work.Reasons)
		}
		fatal(t, stop())
	})
}

// TestS5_AWholeControllerLacks what fails in one of its namespaces.
func TestS5_AWholeControllerLacks(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, m.AddController(control(w, informerIn[*corev1.ConfigMap](w, "a", "b"), options{Name: "single"}, nothing)))
		stop := run(w, m)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.Of(slot.Count))
		lead(s, nil)
		time.Sleep(5 * time.Second)
		if work := s.Work(); work.Ready != slot.Of(slot.Count) || len(work.Lacks) > 0 {
			t.Errorf("the work is %+v", work)
		}
		refuseIn(w, "configmaps", "b")
		time.Sleep(70 * time.Second)
		if work := s.Work(); !work.Ready.IsEmpty() || !slices.Equal(work.Lacks, []string{"single"}) {
			t.Errorf("the work is %+v", work)
		}
		fatal(t, stop())
	})
}

// TestS5_LateAndHung: a call runs for long, and holds up the keys of another slot.
func TestS5_LateAndHung(t *testing.T) {
	inSlots(t, controller.ByNamespace, options{}, func(_ context.Context, r request) (controller.Result, error) {
		if r.Key == "a/long" {
			time.Sleep(20 * time.Minute)
		}
		return controller.Result{}, nil
	}, func(w *world, s *controller.Slots, _ *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		create(w, configMap("a", "long"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a", "b", "c")))
		synctest.Wait()
		check := func(after time.Duration, late slot.Set, hung bool) {
			t.Helper()
			time.Sleep(after)
			if work := s.Work(); work.Late != late || work.Hung != hung || work.Ready != slotsOf("a", "b", "c") {
				t.Errorf("late are %v, hung is %v, ready are %v", work.Late, work.Hung, work.Ready)
			}
		}
		check(11*time.Minute, slot.Set{}, false) // no key waits
		create(w, configMap("b", "x"))
		check(10*time.Second, slotsOf("a", "b", "c"), true)
		check(10*time.Minute, slot.Set{}, false) // the call has ended
	})
	inSlots(t, controller.ByNamespace, options{}, func(_ context.Context, r request) (controller.Result, error) {
		if r.Namespace() == "a" {
			time.Sleep(5 * time.Minute)
		}
		return controller.Result{}, nil
	}, func(w *world, s *controller.Slots, _ *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		create(w, configMap("a", "x"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a", "b")))
		synctest.Wait()
		create(w, configMap("b", "y"))
		time.Sleep(50 * time.Second)
		if work := s.Work(); !work.Late.IsEmpty() {
			t.Errorf("late are %v", work.Late)
		}
		time.Sleep(20 * time.Second)
		if work := s.Work(); work.Late != slotsOf("b") || work.Hung {
			t.Errorf("late are %v, hung is %v", work.Late, work.Hung)
		}
		s.Shut(slotsOf("b"))
		if work := s.Work(); !work.Late.IsEmpty() {
			t.Errorf("late are %v, and ready %v", work.Late, work.Ready)
		}
		time.Sleep(4 * time.Minute)
	})
}

// TestS1_ObjectsOfEntries are counted as an entry opens, and then from time to time.
func TestS1_ObjectsOfEntries(t *testing.T) {
	inSlots(t, controller.ByNamespace, options{}, nothing, func(
		w *world, s *controller.Slots, _ *controller.Controller[*corev1.ConfigMap], _ *testTerm,
	) {
		for n := range 5 {
			create(w, configMap([]string{"a", "b"}[n%2], fmt.Sprint("x", n)))
		}
		synctest.Wait()
		check := func(a, b int) {
			t.Helper()
			if objects := s.Work().Objects; objects[slotOf("a")] != a || objects[slotOf("b")] != b {
				t.Errorf("%d and %d objects, want %d and %d", objects[slotOf("a")], objects[slotOf("b")], a, b)
			}
		}
		s.Serve(owned(slotsOf("a")))
		synctest.Wait()
		check(3, 0)
		create(w, configMap("a", "y"))
		s.Serve(owned(slotsOf("b")))
		synctest.Wait()
		check(3, 2)
		time.Sleep(10 * time.Second)
		check(4, 2)
		s.Drop(slotsOf("a"))
		check(0, 2)
	})
}

// hanging makes a controller with code that does not return for a ConfigMap, before the release.
type hanging func(w *world, s *controller.Slots, hangs func(*corev1.ConfigMap)) *controller.Controller[*corev1.ConfigMap]

// hangings are by the beginning of the error.
var hangings = map[string]hanging{
	`the transform of informer "configmaps.v1 [transformed]"`: func(
		w *world, s *controller.Slots, hangs func(*corev1.ConfigMap),
	) *controller.Controller[*corev1.ConfigMap] {
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{
			Transform: tidings.NewTransform(func(x *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				hangs(x)
				return x, nil
			}),
		})
		fatal(w.T, err)
		return control(w, i, options{Slots: s}, nothing)
	},
	`the cache of informer "configmaps.v1", or an index of it,`: func(
		w *world, s *controller.Slots, hangs func(*corev1.ConfigMap),
	) *controller.Controller[*corev1.ConfigMap] {
		return newController(w, options{Slots: s, Secondaries: []secondary{
			controller.References(informer[*corev1.Secret](w), func(x *corev1.ConfigMap) []string {
				hangs(x)
				return nil
			}),
		}}, nothing)
	},
	`controller "test" is at the change of a/hangs of informer "configmaps.v1"`: func(
		w *world, s *controller.Slots, hangs func(*corev1.ConfigMap),
	) *controller.Controller[*corev1.ConfigMap] {
		return newController(w, options{Slots: s, Secondaries: []secondary{
			controller.Maps(informer[*corev1.ConfigMap](w), func(x *corev1.ConfigMap) iter.Seq[string] {
				hangs(x)
				return func(func(string) bool) {}
			}),
		}}, nothing)
	},
}

// TestS3_WorkThatStandsStill: code of the user does not return.
func TestS3_WorkThatStandsStill(t *testing.T) {
	for want, made := range hangings {
		t.Run(want, func(t *testing.T) {
			inWorld(t, func(w *world) {
				release, s := make(chan struct{}), controller.NewSlots(controller.ByNamespace)
				stop := start(w, made(w, s, func(x *corev1.ConfigMap) {
					if x.Name == "hangs" {
						<-release
					}
				}))
				s.Begin(newTerm())
				fill(w.ctx, t, s, slot.All())
				s.Serve(owned(slotsOf("a")))
				time.Sleep(time.Hour)
				create(w, configMap("a", "hangs"))
				for range 6 { // at first, nothing has happened for long
					if work := s.Work(); work.Blocked != nil {
						t.Errorf("it is blocked at once: %v", work.Blocked)
					}
					time.Sleep(10 * time.Second)
				}
				time.Sleep(20 * time.Second)
				if err := s.Work().Blocked; err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("it is blocked: %v, want %s", err, want)
				}
				close(release)
				time.Sleep(time.Second)
				if err := s.Work().Blocked; err != nil {
					t.Errorf("it is blocked after that: %v", err)
				}
				fatal(t, stop())
			})
		})
	}
}

// TestS5_CallsThatHangAreHungUntilOneEnds, also once the keys that waited for them have gone to others.
func TestS5_CallsThatHangAreHungUntilOneEnds(t *testing.T) {
	var release chan struct{}
	inSlots(t, controller.ByNamespace, options{}, func(_ context.Context, r request) (controller.Result, error) {
		if r.Key == "a/long" {
			<-release
		}
		return controller.Result{}, nil
	}, func(w *world, s *controller.Slots, _ *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		release = make(chan struct{})
		create(w, configMap("a", "long"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a", "b")))
		synctest.Wait()
		create(w, configMap("b", "x"))
		time.Sleep(11 * time.Minute)
		if work := s.Work(); !work.Hung {
			t.Errorf("it is not hung, and %v are late", work.Late)
		}
		s.Shut(slotsOf("b")) // the member gives
		s.Drop(slotsOf("b"))
		time.Sleep(time.Minute)
		if work := s.Work(); !work.Hung || work.Late != slotsOf("a") {
			t.Errorf("hung is %v, late are %v", work.Hung, work.Late)
		}
		close(release)
		time.Sleep(10 * time.Second)
		if work := s.Work(); work.Hung || !work.Late.IsEmpty() {
			t.Errorf("after the end of the call, hung is %v, late are %v", work.Hung, work.Late)
		}
	})
}

// TestS5_AControllerThatIsNotRunIsLacking after a minute, so that other members take what needs it.
func TestS5_AControllerThatIsNotRunIsLacking(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		first := newController(w, options{Name: "first", Slots: s}, nothing)
		second := newController(w, options{Name: "second", Slots: s}, nothing)
		stop := start(w, first)
		s.Begin(newTerm())
		for range 50 {
			if work := s.Work(); work.Started || len(work.Lacks) > 0 {
				t.Fatalf("the work is %+v", work)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		if lacks := s.Work().Lacks; !slices.Equal(lacks, []string{"second"}) {
			t.Errorf("it lacks %q", lacks)
		}
		stopSecond := start(w, second)
		time.Sleep(time.Second)
		if work := s.Work(); !work.Started || len(work.Lacks) > 0 {
			t.Errorf("the work is %+v", work)
		}
		fatal(t, stop())
		fatal(t, stopSecond())
	})
}

// TestS2_ARunnerWhoseCallsRunOn is not handed over: what it does may be that of another owner.
func TestS2_ARunnerWhoseCallsRunOn(t *testing.T) {
	inWorld(t, func(w *world) {
		s, r := controller.NewSlots(controller.ByUID), &canceled{ends: controller.ErrCallsRunning}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, m.AddController(r))
		stop := run(w, m)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.Of(slot.Count))
		lead(s, nil)
		synctest.Wait()
		s.Shut(slot.Of(slot.Count))
		synctest.Wait()
		if c := s.Calls(slot.Count); c.Running == 0 {
			t.Errorf("the calls are %+v", c)
		}
		if err := stop(); !errors.Is(err, controller.ErrCallsRunning) {
			t.Errorf("Run returns %v", err)
		}
	})
}
