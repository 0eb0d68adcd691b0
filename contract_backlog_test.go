package tidings_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
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

// TestP19_EndsOfWhatTheHandlerKnows: while a handler is behind, the object that it knows gives way to
// others, in any way. Whatever its policy: it receives ends of objects that it knows alone, and its
// events add up to the cache.
func TestP19_EndsOfWhatTheHandlerKnows(t *testing.T) {
	for _, policy := range []tidings.Policy{
		tidings.PolicyConflateUpdates, tidings.PolicyConflateState, tidings.PolicyBlock, tidings.PolicyUnbounded,
	} {
		for _, test := range []struct {
			steps string // + creates x, - deletes it, | does the rest while the watch is cut
			state string // the last event of x under PolicyConflateState
		}{
			{"-", "Deleted default/x 0"},
			{"-+", "Updated default/x 0→1"},
			{"-+-", "Deleted default/x tombstone 0"},
			{"-+-+", "Updated default/x 0→3"},
			{"-+-+-", "Deleted default/x tombstone 0"},
			{"|-+", "Updated default/x 0→2"},
			{"|-+|-", "Deleted default/x tombstone 0"},
			{"-+|-+|-+-", "Deleted default/x tombstone 0"},
		} {
			t.Run(policy.String()+" "+test.steps, func(t *testing.T) {
				property(t, func(w *world) { endsWhatIsKnown(w, policy, test.steps, test.state) })
			})
		}
	}
}

func endsWhatIsKnown(w *world, policy tidings.Policy, steps, state string) {
	l := &ledger{w: w}
	w.followers = append(w.followers, l)
	limit := 1
	if policy == tidings.PolicyBlock {
		limit = 100
	}
	l.registration = w.probe.handle(l.Handle, tidings.HandlerOptions{Policy: policy, Limit: limit})
	w.create("x", "0")
	w.create("other", "0")
	w.start()
	l.Take()
	l.Block()
	w.update("other", "1") // its call is running: what comes after it is not of its run
	synctest.Wait()
	w.update("other", "2")
	cut := false
	for n, step := range steps {
		switch step {
		case '+':
			w.create("x", fmt.Sprint(n))
		case '-':
			w.remove("x")
		case '|':
			if cut = !cut; cut {
				w.gate.set(refuse(http.StatusGone, "Expired"))
				w.server.CutConnections()
			} else {
				w.gate.set(nil)
				w.settle()
			}
		}
		if !cut {
			synctest.Wait() // the handler's backlog has each change
		}
	}
	w.gate.set(nil)
	w.settle()
	l.Unblock()
	synctest.Wait()
	last := ""
	for _, e := range l.Take() {
		if e.Key == "default/x" {
			last = e.String()
		}
	}
	if policy == tidings.PolicyConflateState && last != state {
		w.Errorf("the last event is %q, want %q", last, state)
	}
	l.sum()
}
