package shard

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

func TestS1_ControllersShareKeys(t *testing.T) {
	for _, by := range []slot.Key{controller.ByNamespace, controller.ByUID} {
		t.Run(string(by), func(t *testing.T) {
			inFleet(t, 96, func(f *fleet) {
				a, b := f.two(by)
				asked := time.Now()
				for i := range f.objects {
					f.ask(i, 1)
				}
				time.Sleep(10 * time.Second)
				calls, shares := f.since(asked), map[string]int{}
				for i := range f.objects {
					made := calls[fmt.Sprint(namespaceOf(i), "/c", i)]
					if len(made) == 0 {
						t.Errorf("c%d is not called", i)
						continue
					}
					shares[made[0].process]++
				}
				if shares["a"] < 20 || shares["b"] < 20 {
					t.Errorf("the shares are %v", shares)
				}
				if got := a.control.Health().Slots; got != a.serves().String() {
					t.Errorf("a serves %s, and its health says %s", a.serves(), got)
				}
				if h := b.Health(); h.Covered != 1 {
					t.Errorf("the health is %+v", h)
				}
				f.wantHeld(a, b)
			})
		})
	}
}

// wantHeld checks that each object is in the cache of one process, with informers of slots, or of
// all processes.
func (f *fleet) wantHeld(replicas ...*replica) {
	f.Helper()
	copies := map[string]int{}
	for _, r := range replicas {
		for key := range r.informer.Lister().All() {
			copies[key]++
		}
	}
	want := len(replicas)
	if f.held {
		want = 1
	}
	for i := range f.objects {
		if key := fmt.Sprint(namespaceOf(i), "/c", i); copies[key] != want {
			f.Errorf("%s is in the caches of %d processes, want %d", key, copies[key], want)
		}
	}
}

// callsOfMoves returns the number of calls of each key by a process for the move of its slot, since
// a point in time, and the time until the last of the keys was called.
func (f *fleet) callsOfMoves(at time.Time, process string) (counts map[string]int, last time.Duration) {
	counts = map[string]int{}
	for key, calls := range f.since(at) {
		first := time.Duration(0)
		for _, c := range calls {
			if c.process != process {
				continue
			}
			if first == 0 {
				first = c.began.Sub(at)
			}
			for _, reason := range c.reasons {
				if reason.Cause == controller.Moved {
					counts[key]++
				}
			}
		}
		last = max(last, first)
	}
	return counts, last
}

// wantAllMoved checks that each key had one call for the move of its slot since a process joined,
// and that the first call of each key was within a time after a point in time.
func (f *fleet) wantAllMoved(joined, at time.Time, process string, least, most time.Duration) {
	f.Helper()
	counts, _ := f.callsOfMoves(joined, process)
	_, last := f.callsOfMoves(at, process)
	for i := range f.objects {
		if key := fmt.Sprint(namespaceOf(i), "/c", i); counts[key] != 1 {
			f.Errorf("%s has %d calls for the move", key, counts[key])
		}
	}
	f.wantBetween("the last first call", last, least, most)
}

// TestS2_APlannedHandOverOfControllers has a member that leaves while its calls run, and objects
// change. The caches of the next owner lag: its first call of each key still begins with the last
// write.
func TestS2_APlannedHandOverOfControllers(t *testing.T) {
	const takes = 500 * time.Millisecond
	for _, lag := range []time.Duration{0, 3 * time.Second} {
		t.Run(lag.String(), func(t *testing.T) {
			inFleet(t, 48, func(f *fleet) {
				a := f.join("a", controller.ByNamespace)
				f.served(a)
				joined := time.Now()
				b := f.join("b", controller.ByNamespace)
				time.Sleep(5 * time.Second)
				a.set(func(a *replica) { a.takes = takes })
				b.server.SetLag(lag)
				left := time.Now()
				for i := range f.objects {
					f.ask(i, 1)
				}
				time.Sleep(100 * time.Millisecond)
				a.stop()
				f.served(b)
				time.Sleep(10 * time.Second)
				f.wantAllMoved(joined, left.Add(time.Millisecond), "b", 0, takes+time.Second+lag)
				if err := a.Wait(); err != nil {
					t.Error(err)
				}
				if h := b.Health(); h.Covered != 1 {
					t.Errorf("the health is %+v", h)
				}
			})
		})
	}
}

// TestS2_AHandOverWithAServerThatSelects has a member that leaves while a call runs. Its slots go
// to two members, whose watches lag and bring the objects of their own slots alone: one of them
// waits for the write of that call, and the other one does not, as it would not see it.
func TestS2_AHandOverWithAServerThatSelects(t *testing.T) {
	const takes, lag = 500 * time.Millisecond, 3 * time.Second
	inFleetOf(t, 96, apisim.Options{ShardedListAndWatch: true}, func(f *fleet) {
		f.held = true
		a := f.join("a", controller.ByUID)
		f.served(a)
		b, c := f.join("b", controller.ByUID), f.join("c", controller.ByUID)
		time.Sleep(time.Minute)
		f.served(a, b, c)
		if n := a.serves().Len(); n < Count/4 || !c.informer.Health().Sharded {
			t.Fatalf("a serves %d slots; the health of an informer is %+v", n, c.informer.Health())
		}
		a.set(func(a *replica) { a.takes = takes })
		b.server.SetLag(lag)
		c.server.SetLag(lag)
		for i := range f.objects {
			key := fmt.Sprint(namespaceOf(i), "/c", i)
			if o, err := a.informer.Lister().Get(key); err == nil && a.serves().Has(slot.UID.Of(string(o.UID), "")) {
				f.ask(i, 1)
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
		a.stop()
		f.wantBetween("the hand-over", f.served(b, c), 0, takes+time.Second+lag)
		time.Sleep(10 * time.Second)
		if err := a.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestS2_AHandOverAfterACrashWithAServerThatSelects: nobody waits for the versions that the server
// had after the crash, as no event of the slots may have them.
func TestS2_AHandOverAfterACrashWithAServerThatSelects(t *testing.T) {
	inFleetOf(t, 0, apisim.Options{ShardedListAndWatch: true}, func(f *fleet) {
		f.held = true
		a := f.join("a", controller.ByUID)
		f.served(a)
		b, c := f.join("b", controller.ByUID), f.join("c", controller.ByUID)
		time.Sleep(time.Minute)
		f.served(a, b, c)
		f.server.Inject(apisim.Match{UserAgent: "a"}, apisim.Drop())
		time.Sleep(2 * duration)
		f.served(b, c)
		b.stop()
		f.wantBetween("the hand-over", f.served(c), 0, time.Second)
	})
}

// TestS3_TheKeysOfACrashedControllerAreCalledInTime cuts a process off, whose calls run on.
func TestS3_TheKeysOfACrashedControllerAreCalledInTime(t *testing.T) {
	inFleet(t, 48, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.served(a)
		joined := time.Now()
		b := f.join("b", controller.ByNamespace)
		time.Sleep(5 * time.Second)
		a.set(func(a *replica) { a.takes = time.Minute })
		for i := range f.objects {
			f.ask(i, 1)
		}
		time.Sleep(time.Second)
		crashed := time.Now()
		f.server.Inject(apisim.Match{UserAgent: "a"}, apisim.Drop())
		for b.serves().Len() < Count/2 && time.Since(crashed) < time.Minute {
			time.Sleep(50 * time.Millisecond)
		}
		f.served(b)
		f.wantBetween("the take-over", time.Since(crashed), duration*2/3, takeOverBound)
		time.Sleep(time.Second)
		f.wantAllMoved(joined, crashed, "b", duration/2, takeOverBound)
	})
}

// TestS3_APausedControllerWritesNothing delays the renewals of a process whose calls ignore their
// contexts: their writes are refused, and the process has to be ended.
func TestS3_APausedControllerWritesNothing(t *testing.T) {
	inFleet(t, 24, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.served(a)
		b := f.join("b", controller.ByNamespace)
		time.Sleep(5 * time.Second)
		a.set(func(a *replica) { a.takes, a.ignores = time.Minute, true })
		for i := range f.objects {
			f.ask(i, 1)
		}
		time.Sleep(time.Second)
		f.server.Inject(by("a", ""), apisim.Delay(time.Hour))
		time.Sleep(2 * duration)
		f.served(b)
		before := len(f.server.Requests().Of(apisim.Match{Resource: "configmaps", UserAgent: "a", Verb: "update"}))
		time.Sleep(2 * time.Minute)
		after := len(f.server.Requests().Of(apisim.Match{Resource: "configmaps", UserAgent: "a", Verb: "update"}))
		a.mu.Lock()
		defer a.mu.Unlock()
		if after != before || !errors.Is(a.refused, lease.ErrDeadline) {
			t.Errorf("a sent %d writes; the last refusal is %v", after-before, a.refused)
		}
		if err := a.Wait(); !errors.Is(err, ErrStragglers) {
			t.Errorf("the group of a ended with %v", err)
		}
	})
}

// TestS3_AControllerThatWasPausedTakesPartAgain delays the renewals of a process for a minute.
func TestS3_AControllerThatWasPausedTakesPartAgain(t *testing.T) {
	inFleet(t, 24, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.served(a)
		b := f.join("b", controller.ByNamespace)
		time.Sleep(5 * time.Second)
		paused := time.Now()
		pause := f.server.Inject(by("a", ""), apisim.Delay(time.Minute))
		time.Sleep(2 * duration)
		f.served(b)
		if got := a.control.Health(); got.State != controller.StateWaiting || !a.serves().IsEmpty() {
			t.Errorf("a serves %v: %+v", a.serves(), got)
		}
		time.Sleep(30 * time.Second)
		pause.Lift()
		time.Sleep(time.Minute)
		left := time.Now()
		b.stop()
		f.served(a)
		time.Sleep(10 * time.Second)
		f.wantAllMoved(paused, left, "a", 0, time.Second)
	})
}

// TestS7_AJoinIsAFewLists counts the lists of a third process until its share is complete: the
// first list, and one for each time that the planner gives it slots.
func TestS7_AJoinIsAFewLists(t *testing.T) {
	inOneFleet(t, 240, true, func(f *fleet) {
		a := f.join("a", controller.ByUID)
		b := f.join("b", controller.ByUID)
		time.Sleep(time.Minute)
		f.served(a, b)
		c := f.join("c", controller.ByUID)
		time.Sleep(time.Minute)
		f.served(a, b, c)
		lists := f.server.Requests().Of(apisim.Match{Resource: "configmaps", UserAgent: "c", Verb: "list"})
		if n := c.informer.Lister().Len(); n < 60 || len(lists) == 0 || len(lists) > 6 {
			t.Errorf("%d lists for %d objects", len(lists), n)
		}
	})
}

// TestS2_AHandOverOfQuietObjects: two replicas start one after the other, and the first one leaves
// in order. No object changes meanwhile; the Leases of the group do.
func TestS2_AHandOverOfQuietObjects(t *testing.T) {
	inFleetOf(t, 0, apisim.Options{}, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.served(a)
		b := f.join("b", controller.ByNamespace)
		time.Sleep(15 * time.Second)
		a.stop()
		f.wantBetween("the hand-over", f.served(b), 0, 2*time.Second)
	})
}

// TestS2_AHandOverOfQuietObjectsAfterACrash: the slots of a crashed replica go to another one, and
// on to a third one when that leaves in order.
func TestS2_AHandOverOfQuietObjectsAfterACrash(t *testing.T) {
	inFleetOf(t, 0, apisim.Options{BookmarkInterval: 5 * time.Minute}, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.served(a)
		b, c := f.join("b", controller.ByNamespace), f.join("c", controller.ByNamespace)
		time.Sleep(time.Minute)
		f.served(a, b, c)
		f.server.Inject(apisim.Match{UserAgent: "a"}, apisim.Drop())
		time.Sleep(2 * duration)
		f.served(b, c)
		b.stop()
		f.wantBetween("the hand-over", f.served(c), 0, 2*time.Second)
	})
}
