package fanout

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// rig is a log with its truth.
type rig struct {
	t *testing.T
	*cluster
	log *Log[*object]
}

// inBubble runs a test of a log in a synctest bubble, which fails if a goroutine
// outlives the log.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, cluster: newCluster(), log: started(Options[*object]{Describe: describe})}
		defer r.log.Close()
		test(t, r)
	})
}

// publish applies actions to a key, each published as a batch of its own.
func (r *rig) publish(key string, all ...action) {
	for _, a := range all {
		r.log.Publish(r.do(key, a), len(r.state))
	}
}

// marked ends the first list.
func (r *rig) marked() {
	r.log.MarkSynced()
	r.initial = false
}

// handler is a witness behind a gate.
type handler struct {
	*witness
	*Subscription[*object]
	gate chan struct{} // each call takes one; closed: open
	open bool
	from int // what was published before it joined
	snap []change.Change[*object]
}

// join subscribes a witness with a snapshot of now. A gated one makes a call for
// each token.
func (r *rig) join(gated bool, o SubscriptionOptions) *handler {
	r.t.Helper()
	h := &handler{witness: newWitness(), gate: make(chan struct{}, 1<<16), from: len(r.history), snap: r.snapshot()}
	if !gated {
		h.release()
	}
	s, err := r.log.Subscribe(func(n change.Change[*object]) {
		<-h.gate
		h.see(n)
	}, items(h.snap), o)
	if err != nil {
		r.t.Fatal(err)
	}
	h.Subscription = s
	return h
}

// step lets n calls return and waits until they have.
func (h *handler) step(n int) {
	for range n {
		h.gate <- struct{}{}
	}
	synctest.Wait()
}

// release opens the gate for good.
func (h *handler) release() {
	if !h.open {
		h.open = true
		close(h.gate)
	}
}

// finish opens the gate and checks that the handler received the truth.
func (r *rig) finish(h *handler) {
	r.t.Helper()
	h.release()
	synctest.Wait()
	if err := h.whole(r.cluster); err != nil {
		r.t.Errorf("%s: %v", h.Name(), err)
	}
}

// whole returns the errors in the notifications of an idle handler.
func (h *handler) whole(c *cluster) error {
	switch st := h.Stats(); {
	case h.err != nil:
		return h.err
	case !maps.Equal(h.view, c.state):
		return errors.New("its notifications do not add up to the state")
	case st.Pending != 0 || st.Initial != 0 || st.Behind || st.Unseen != 0 || st.Key != "" || !st.Since.IsZero():
		return errors.New("idle, but its figures are not")
	case st.Delivered != uint64(len(h.seen)):
		return errors.New("Delivered is not the number of calls")
	case len(h.told(0))+int(st.Folded) != len(h.snap)+len(c.history)-h.from:
		return errors.New("told and folded are not what was published")
	case !slices.Equal(h.seen[:len(h.snap)], h.snap):
		return errors.New("the initial set is not the snapshot")
	}
	return compare(h.policy, h.told(len(h.snap)), c.history[h.from:])
}

func TestP04_EveryChangeInOrderOneCallAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var handlers []*handler
		for _, policy := range []Policy{ConflateUpdates, ConflateState, Block, Unbounded} {
			handlers = append(handlers, r.join(false, SubscriptionOptions{Policy: policy}))
		}
		var running, calls atomic.Int64
		_, err := r.log.Subscribe(func(change.Change[*object]) {
			if running.Add(1) != 1 {
				t.Error("two calls at a time")
			}
			time.Sleep(time.Millisecond)
			calls.Add(1)
			running.Add(-1)
		}, nil, SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			r.publish("k"+strconv.Itoa(i%7), action(i)%actions)
		}
		time.Sleep(time.Minute)
		for _, h := range handlers {
			r.finish(h)
			if got := h.told(0); !slices.Equal(got, r.history) {
				t.Errorf("%v below its limit: told %d of %d", h.policy, len(got), len(r.history))
			}
		}
		if int(calls.Load()) != len(r.history) {
			t.Errorf("the slow handler was called %d times, want %d", calls.Load(), len(r.history))
		}
	})
}

func TestP04_BatchLargerThanAChunk(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(false, SubscriptionOptions{Policy: Unbounded})
		for _, size := range []int{1, smallChunk - 1, smallChunk, 1, largeChunk, 10*largeChunk + 1, 0, 3} {
			var batch []change.Change[*object]
			for i := range size {
				batch = append(batch, r.do("k"+strconv.Itoa(i), modify)...)
			}
			r.log.Publish(batch, len(r.state))
			clear(batch) // the log keeps nothing of the array
			synctest.Wait()
		}
		r.finish(h)
	})
}

func TestP05_RemovedInItsInitialSet(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for i := range 1000 {
			r.publish("k"+strconv.Itoa(i), modify)
		}
		taken, calls := 0, 0
		next := items(r.snapshot())
		counted := func() (string, *object, bool) {
			taken++
			return next()
		}
		self := make(chan *Subscription[*object], 1)
		s, err := r.log.Subscribe(func(change.Change[*object]) {
			if calls++; calls == 70 {
				(<-self).Remove()
			}
		}, counted, SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		self <- s
		<-s.Done()
		if calls != 70 || taken != 2*bufferSize || s.HasSynced() {
			t.Errorf("calls %d, items taken %d, synced %v, want 70, %d, false", calls, taken, s.HasSynced(), 2*bufferSize)
		}
	})
}

func TestP07_SyncedAfterWhatWasBeforeTheMark(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(true, SubscriptionOptions{})
		idle := r.join(false, SubscriptionOptions{})
		r.publish("a", modify)
		r.publish("b", modify)
		synctest.Wait()
		if idle.HasSynced() {
			t.Error("synced before the mark")
		}
		r.marked()
		r.log.MarkSynced()
		r.publish("c", modify)
		synctest.Wait()
		if !idle.HasSynced() {
			t.Error("an idle handler is not synced by the mark")
		}
		h.step(1)
		if h.HasSynced() {
			t.Error("synced with a call of the initial set running")
		}
		h.step(1)
		if !h.HasSynced() {
			t.Error("not synced after the initial set")
		}
		for _, n := range idle.seen {
			if n.Initial != (n.Key != "c") {
				t.Errorf("%s: initial %v", show(n), n.Initial)
			}
		}
		r.finish(h)
	})
}

func TestP07_LateHandlerSyncsWithItsInitialSet(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.publish("a", modify)
		r.publish("b", modify)
		r.marked()
		h := r.join(true, SubscriptionOptions{})
		r.publish("a", modify)
		h.step(1)
		if h.HasSynced() {
			t.Error("synced with half of its initial set")
		}
		h.step(1)
		if !h.HasSynced() {
			t.Error("not synced after its initial set")
		}
		r.finish(h)
		empty, err := r.log.Subscribe(func(change.Change[*object]) {}, nil, SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		<-empty.Synced()
	})
}

func TestP07_MarkInAFoldedBacklog(t *testing.T) {
	for _, markFirst := range []bool{true, false} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.initial = false // so that the adds count
			h := r.join(true, SubscriptionOptions{Limit: 1})
			r.publish("a", modify)
			synctest.Wait() // the call for a is running
			r.publish("b", modify, modify)
			if markFirst {
				r.log.MarkSynced()
			}
			r.publish("c", modify, modify)
			if !h.Stats().Behind {
				t.Fatal("not behind")
			}
			if !markFirst {
				r.log.MarkSynced()
			}
			h.step(2)
			if h.HasSynced() {
				t.Error("synced before what was published before the mark")
			}
			h.step(3)
			if !h.HasSynced() {
				t.Error("not synced")
			}
			r.finish(h)
		})
	}
}

func TestSubscribeRefusesOptionsThatMakeNoSense(t *testing.T) {
	l := started(Options[*object]{})
	defer l.Close()
	handle := func(change.Change[*object]) {}
	for _, test := range []struct {
		want   string
		handle func(change.Change[*object])
		o      SubscriptionOptions
	}{
		{"function is nil", nil, SubscriptionOptions{}},
		{"Limit", handle, SubscriptionOptions{Limit: -1}},
		{"Policy is Policy(9)", handle, SubscriptionOptions{Policy: 9}},
		{"ResyncPeriod", handle, SubscriptionOptions{ResyncPeriod: -1}},
		{"ResyncOffset", handle, SubscriptionOptions{ResyncOffset: -1}},
		{"give a ResyncPeriod", handle, SubscriptionOptions{ResyncOffset: 1}},
	} {
		test.o.Name = "roller"
		s, err := l.Subscribe(test.handle, nil, test.o)
		if s != nil || err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `"roller"`) {
			t.Errorf("error %v, want one that names roller and %s", err, test.want)
		}
	}
	s, err := l.Subscribe(handle, nil, SubscriptionOptions{})
	if err != nil || s.Name() != "handler-1" {
		t.Errorf("a nameless handler is %v, %v", s, err)
	}
}
