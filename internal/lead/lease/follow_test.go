package lease

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
)

// follow runs the follower for a moment, so that it watches.
func (w *world) follow() {
	w.run(w.follower.Run)
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

// wantObserved checks that the view has the stored Lease.
func (w *world) wantObserved() {
	w.Helper()
	synctest.Wait()
	stored := leasetest.Get(w.T, w.server, "rollout")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.view.ResourceVersion != stored.ResourceVersion {
		w.Errorf("observed is version %s, stored %s", w.view.ResourceVersion, stored.ResourceVersion)
	}
}

// users allows verbs to the process.
func (w *world) users(verbs ...string) {
	w.Helper()
	err := w.server.SetUsers(apisim.User{Name: "a", Token: "a", Allow: []apisim.Rule{
		{Verbs: verbs, Resources: []string{"leases.coordination.k8s.io"}},
	}})
	if err != nil {
		w.Fatal(err)
	}
}

func TestAWatchShowsEachChangeAndTheEnd(t *testing.T) {
	bubble(t, func(w *world) {
		w.follow()
		for range 3 {
			w.change(note)
			w.wantObserved()
		}
		w.delete()
		synctest.Wait()
		if _, ok := w.leaseOf("a"); ok || len(w.observed) != 4 {
			t.Errorf("observed were the versions %v", w.observed)
		}
		if w.sent("list") != 1 || w.sent("watch") != 1 || w.sent("") != 2 {
			t.Errorf("the requests are\n%v", w.server.Requests())
		}
	})
}

func TestAWatchThatShowsALossEndsTheTerm(t *testing.T) {
	for name, test := range losses {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.follow()
				began := time.Now()
				test.change(w)
				wantClosed(t, w.term, began, 0, test.want)
			})
		})
	}
}

func TestAWatchResumesWhereItEnded(t *testing.T) {
	bubble(t, func(w *world) {
		w.follow()
		for range 5 {
			w.change(note)
			synctest.Wait()
			w.server.CutConnections()
			w.change(note) // nobody watches
			time.Sleep(time.Second)
			w.wantObserved()
		}
		if w.sent("list") != 1 || w.sent("watch") != 6 || len(w.observed) != 10 {
			t.Errorf("%d events came by\n%v", len(w.observed), w.server.Requests())
		}
	})
}

func TestAnExpiredWatchBeginsWithAList(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Inject(leasetest.By("a", "watch").Nth(1), apisim.FailLater(time.Second, http.StatusGone))
		w.follow()
		time.Sleep(2 * time.Second)
		w.change(note)
		w.wantObserved()
		if n, _, err := w.failures.Get(); w.sent("list") != 2 || w.sent("watch") != 2 || n != 0 {
			t.Errorf("%d failures, %v:\n%v", n, err, w.server.Requests())
		}
	})
}

func TestWatchesThatFailAreNoHotLoop(t *testing.T) {
	for name, test := range map[string]struct {
		verb  string
		fault apisim.Fault
	}{
		"refused lists":   {"list", apisim.Refuse(http.StatusInternalServerError, 0)},
		"refused watches": {"watch", apisim.Refuse(http.StatusInternalServerError, 0)},
		"expired watches": {"watch", apisim.Fail(0, http.StatusGone)},
		"cut watches":     {"watch", apisim.CutBefore(0)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				failing := w.server.Inject(leasetest.By("a", test.verb), test.fault)
				w.follow()
				time.Sleep(time.Minute)
				// One try a second, after the first ones; with jitter, four in three seconds.
				if n := w.sent(test.verb); n < 50 || n > 85 {
					t.Errorf("%d requests in a minute", n)
				}
				failing.Lift()
				time.Sleep(time.Second)
				w.change(note)
				w.wantObserved()
			})
		})
	}
}

// TestAForbiddenWatchIsReplacedByReads has the right to watch taken, and given back.
func TestAForbiddenWatchIsReplacedByReads(t *testing.T) {
	bubble(t, func(w *world) {
		w.follow()
		if err := w.follower.Polling(); err != nil {
			t.Errorf("it is watched, and still polled: %v", err)
		}
		w.users("get", "list")
		w.server.CutConnections()
		time.Sleep(time.Second)
		synctest.Wait()
		began := w.sent("get")
		for range 20 {
			w.change(note)
			time.Sleep(3 * time.Second)
			w.wantObserved()
		}
		if n := w.sent("get") - began; n != 20 || w.sent("watch") != 2 {
			t.Errorf("%d reads and %d watches in a minute", n, w.sent("watch"))
		}
		err := w.follower.Polling()
		if err == nil || !strings.Contains(err.Error(), "is read every 3s: watch lease ops/rollout: ") ||
			!strings.Contains(err.Error(), "grant the verb watch on leases") {
			t.Errorf("the reason is %v", err)
		}
		if n, _, err := w.failures.Get(); n > 1 { // the connection that was cut
			t.Errorf("%d failures: %v", n, err)
		}
		w.users("get", "list", "watch")
		time.Sleep(polls * 3 * time.Second)
		w.change(note)
		time.Sleep(250 * time.Millisecond) // a list may be due, as nobody renews the Lease
		w.wantObserved()
		if err := w.follower.Polling(); err != nil {
			t.Errorf("it may be watched, and is polled: %v", err)
		}
		reads := w.sent("get")
		time.Sleep(time.Hour)
		if w.sent("get") != reads {
			t.Errorf("a Lease that is watched is read:\n%v", w.server.Requests())
		}
	})
}

func TestReadsThatFailAreCounted(t *testing.T) {
	bubble(t, func(w *world) {
		w.users("list")
		w.follow()
		time.Sleep(29 * time.Second)
		n, at, err := w.failures.Get()
		if n != 10 || err == nil || !strings.Contains(err.Error(), "grant the verb get") ||
			time.Since(at) > 3*time.Second {
			t.Errorf("%d failures, the last one %v ago: %v", n, time.Since(at), err)
		}
	})
}

// TestASilentWatchEndsWithARequestWithoutAnAnswer has both on one connection, which is dead.
func TestASilentWatchEndsWithARequestWithoutAnAnswer(t *testing.T) {
	bubble(t, func(w *world) {
		silence := w.server.Inject(leasetest.By("a", "watch").Nth(1), apisim.Stall(1, 0))
		w.follow()
		w.change(note)
		w.silent.Store(true)
		if err := w.read(w.Context()); !IsTimeout(err) {
			t.Errorf("the request ended with %v", err)
		}
		w.silent.Store(false)
		time.Sleep(250 * time.Millisecond)
		w.wantObserved()
		if w.sent("list") != 2 || w.sent("watch") != 2 {
			t.Errorf("the requests are\n%v", w.server.Requests())
		}
		silence.Lift()
	})
}

// TestAWatchWithoutAnEventForADurationEnds has a watch that brings nothing while requests succeed,
// from its begin or from its first event on.
func TestAWatchWithoutAnEventForADurationEnds(t *testing.T) {
	for frame := range 2 {
		bubble(t, func(w *world) {
			silence := w.server.Inject(leasetest.By("a", "watch").Nth(1), apisim.Stall(frame, 0))
			w.follow()
			w.change(note)
			time.Sleep(DefaultDuration + 250*time.Millisecond)
			w.wantObserved()
			if w.sent("list") != 2 || w.sent("watch") != 2 {
				t.Errorf("frame %d: the requests are\n%v", frame, w.server.Requests())
			}
			silence.Lift()
		})
	}
}

// TestWatchesThatFailForLongBeginWithAList has watches fail, and lists succeed.
func TestWatchesThatFailForLongBeginWithAList(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Inject(leasetest.By("a", "watch"), apisim.Refuse(http.StatusInternalServerError, 0))
		w.follow()
		time.Sleep(time.Minute)
		w.change(note)
		time.Sleep(2 * time.Second)
		w.wantObserved()
	})
}

func TestARestartBeginsWithAList(t *testing.T) {
	bubble(t, func(w *world) {
		w.follower.Restart() // nothing runs yet
		w.follow()
		w.follower.Restart()
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if n, _, err := w.failures.Get(); w.sent("list") != 2 || w.sent("watch") != 2 || n != 0 {
			t.Errorf("%d failures, %v:\n%v", n, err, w.server.Requests())
		}
	})
}
