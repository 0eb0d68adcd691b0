package contract_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

// The size of the test of retained objects.
const (
	retainedKeys    = 200
	retainedUpdates = 100 // of each key
	retainedBatch   = 50  // events that the source hands over at once
)

// updater is a source of objects that are updated in turns. It keeps none of them alive, and
// knows which are.
type updater struct {
	more chan struct{} // each has the watch bring a batch

	mu   sync.Mutex // guards what follows
	made []weak.Pointer[corev1.ConfigMap]
}

// next makes the next object: those of the list, and then the updates.
func (u *updater) next() *corev1.ConfigMap {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := len(u.made)
	obj := stateAt(fmt.Sprintf("object-%03d",
		n%retainedKeys), fmt.Sprint(n+1), fmt.Sprint(n/retainedKeys))
	u.made = append(u.made, weak.Make(obj))
	return obj
}

// alive counts the objects that were made, and those that something holds on to.
func (u *updater) alive() (made, alive int) {
	runtime.GC()
	runtime.GC() // the first one may have begun before
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, obj := range u.made {
		if obj.Value() != nil {
			alive++
		}
	}
	return len(u.made), alive
}

func (u *updater) List(
	context.Context, source.ListOptions,
) (source.Page[*corev1.ConfigMap], error) {
	page := source.Page[*corev1.ConfigMap]{Version: fmt.Sprint(retainedKeys)}
	for range retainedKeys {
		page.Items = append(page.Items, source.ItemOf(u.next()))
	}
	return page, nil
}

func (u *updater) Watch(
	ctx context.Context, o source.WatchOptions,
) (source.Stream[*corev1.ConfigMap], error) {
	if o.SendInitialEvents {
		return nil, source.ErrStreamedListRefused
	}
	return &updates{ctx, u}, nil
}

type updates struct {
	ctx context.Context
	*updater
}

func (s *updates) Next() ([]source.Event[*corev1.ConfigMap], error) {
	select {
	case <-s.more:
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
	var events []source.Event[*corev1.ConfigMap]
	for range retainedBatch {
		item := source.ItemOf(s.next())
		events = append(events, source.Event[*corev1.ConfigMap]{Type: source.Modified, Item: item})
	}
	return events, nil
}

func (s *updates) Close() error { return nil }

// TestP10_StuckHandlerKeepsNoStatesBetween: a stuck handler keeps alive the state of each object
// that it saw last and the newest one, whatever came between, and the notifications of its limit;
// unless it asked for everything. When it has caught up, the cache alone keeps objects.
func TestP10_StuckHandlerKeepsNoStatesBetween(t *testing.T) {
	for _, test := range []struct {
		policy tidings.Policy
		most   int
	}{
		// The cache, and the states seen last.
		{tidings.PolicyConflateUpdates, 2*retainedKeys + retainedLimit + retainedSlack},
		{tidings.PolicyConflateState, 2*retainedKeys + retainedLimit + retainedSlack},
		// The cache stands still; the queue before it takes 10,000 changes, then the watch waits.
		{tidings.PolicyBlock, 2*retainedKeys + retainedLimit + retainedSlack + 10_000},
		{tidings.PolicyUnbounded, retainedKeys * (1 + retainedUpdates)},
	} {
		t.Run(test.policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keepsNoStates(t, test.policy, test.most) })
		})
	}
}

// The limit of the stuck handler, and the objects that the goroutines may have at hand.
const (
	retainedLimit = 100
	retainedSlack = retainedBatch
)

func keepsNoStates(t *testing.T, policy tidings.Policy, most int) {
	u := &updater{more: make(chan struct{})}
	o := informerOptions{Name: "updates"}
	o.Transport.Sharing = tidings.ShareNothing // the objects of the source are cached
	i, err := tidings.NewInformer(u, o)
	if err != nil {
		t.Fatal(err)
	}
	quick, release, stuck := 0, make(chan struct{}), false
	p := newProbe(t, i, nil)
	p.handle(func(event) { quick++ }, tidings.HandlerOptions{Name: "quick"})
	p.handle(func(e event) {
		if e.Type == tidings.Updated && !stuck {
			stuck = true
			<-release
		}
	}, tidings.HandlerOptions{Name: "stuck", Policy: policy, Limit: retainedLimit})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- i.Run(ctx) }()
	synctest.Wait()
	left := retainedKeys * retainedUpdates / retainedBatch
	for refused := false; left > 0 && !refused; {
		select {
		case u.more <- struct{}{}:
			left--
			synctest.Wait() // the cache sees each state
		case <-time.After(time.Second):
			refused = true
		}
	}
	if (left > 0) != (policy == tidings.PolicyBlock) {
		t.Errorf("%d batches of the watch were not read", left)
	}

	made, alive := u.alive()
	const all = retainedKeys * (1 + retainedUpdates)
	if (policy == tidings.PolicyBlock) == (quick == all) {
		t.Errorf("the quick handler received %d events of %d", quick, all)
	}
	if alive > most {
		t.Errorf("%d of %d objects are alive, want at most %d", alive, made, most)
	}
	if policy == tidings.PolicyUnbounded && alive < made-retainedKeys {
		t.Errorf("%d of %d objects are alive, want all", alive, made)
	}
	close(release)
	for range left {
		u.more <- struct{}{}
	}
	synctest.Wait()
	if made, alive = u.alive(); made != all || alive > retainedKeys+retainedSlack {
		t.Errorf("after the handler has caught up, %d of %d objects are alive, want %d",
			alive, made, retainedKeys)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestP10_SlotsThatComeBackUnseen removes slots and adds them again while a handler that conflates
// states is behind: objects that are as the handler knows them have not changed.
func TestP10_SlotsThatComeBackUnseen(t *testing.T) {
	withSlots(t, tidings.FactoryOptions{}, tidings.AllSlots(), func(s *slotted) {
		s.have(4)
		l := &ledger{w: s.world}
		l.registration = s.probe.handle(l.Handle, tidings.HandlerOptions{
			Policy: tidings.PolicyConflateState, Limit: 1,
		})
		s.start()
		l.Block()
		defer l.Unblock()
		s.update("o000", "1")
		synctest.Wait()
		s.slots.Remove(tidings.AllSlots())
		synctest.Wait()
		s.must(s.slots.Add(s.ctx, tidings.AllSlots()))
		synctest.Wait()
		l.Unblock()
		synctest.Wait()
		s.agree(l)
		if wrong := l.Wrong(); len(wrong) > 0 {
			s.Error(wrong)
		}
	})
}

func TestP10_HealthOfHandlers(t *testing.T) {
	property(t, func(w *world) {
		w.create("hot", "0")
		w.start()
		began := time.Now()
		var told follow.Follower
		told.Block()
		r := w.probe.handle(told.Handle, tidings.HandlerOptions{Name: "stuck", Limit: 10})
		synctest.Wait()
		if h := r.Health(); h.State != tidings.HandlerBusy || !h.RunningSince.Equal(began) {
			w.Errorf("in the initial set health is %+v", h)
		}
		for i := range 100 {
			w.update("hot", fmt.Sprint(i+1))
			w.create(fmt.Sprint("object-", i), "1")
			synctest.Wait()
		}
		h := r.Health()
		if h.Running != "default/hot" || h.Folded == 0 ||
			h.State != tidings.HandlerBehind && h.State != tidings.HandlerStuck {
			w.Errorf("behind health is %+v", h)
		}
		told.Unblock()
		synctest.Wait()
		if h := r.Health(); h.State != tidings.HandlerIdle || h.Pending != 0 {
			w.Errorf("after it caught up health is %+v", h)
		}
	})
}

func TestP10_BlockHoldsUpTheCacheUntilTheHandlerReturns(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		var told follow.Follower
		told.Block()
		r := w.probe.handle(told.Handle, tidings.HandlerOptions{Policy: tidings.PolicyBlock, Limit: 3})
		w.create("a", "0")
		for i := range 20 {
			w.update("a", fmt.Sprint(i+1))
			synctest.Wait()
		}
		if got := w.probe.get("default/a"); got == w.serverState()["default/a"] {
			w.Error("the cache went on although a handler with the policy Block is stuck")
		}
		told.Unblock()
		synctest.Wait()
		w.agree()
		if n := told.Calls(); n != 21 || r.Health().Folded != 0 {
			w.Errorf("%d calls, want 21; health %+v", n, r.Health())
		}
	})
}

func TestP10_StopGetsPastAHandlerThatBlocksTheCache(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		var told follow.Follower
		told.Block()
		w.probe.handle(told.Handle, tidings.HandlerOptions{Policy: tidings.PolicyBlock, Limit: 1})
		for i := range 10 {
			w.create(fmt.Sprint("object-", i), "1")
			synctest.Wait()
		}
		w.stop()
		err := w.factory.Shutdown(context.Background())
		if !errors.Is(err, tidings.ErrHandlersStuck) {
			w.Errorf("Shutdown: %v", err)
		}
		told.Unblock()
		w.stuck = true
	})
}
