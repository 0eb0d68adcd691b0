package fanout

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// census counts the states that the garbage collector cannot free.
type census []weak.Pointer[object]

func (c *census) add(o *object) { *c = append(*c, weak.Make(o)) }

func (c census) alive() int {
	runtime.GC()
	n := 0
	for _, p := range c {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

// TestP10_StuckHandlerRetains counts the objects that a handler keeps alive that
// never returns, while a million updates of 1,000 keys are published.
func TestP10_StuckHandlerRetains(t *testing.T) {
	const keys = 1000
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	for _, policy := range []Policy{ConflateUpdates, ConflateState} {
		t.Run(policy.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				h := r.join(true, SubscriptionOptions{Policy: policy})
				fast := 0
				if _, err := r.log.Subscribe(func(change.Change[*object]) { fast++ }, nil, SubscriptionOptions{}); err != nil {
					t.Fatal(err)
				}
				state := make([]*object, keys)
				var all census
				for range rounds {
					batch := make([]change.Change[*object], keys)
					for i := range batch {
						n := &batch[i]
						*n = change.Change[*object]{Type: change.Updated, Key: "k" + strconv.Itoa(i), Old: state[i], New: &object{uid: "u"}}
						if n.Old == nil {
							n.Type = change.Added
						}
						state[i] = n.New
						all.add(n.New)
					}
					r.log.Publish(batch, keys)
					synctest.Wait() // or the other handler may be behind too
					if st := h.Stats(); st.Pending > defaultLimit+keys {
						t.Fatalf("%d pending, want at most the limit and one for each key", st.Pending)
					}
				}
				// The states now, of each key an add or an old state, and the chunk of
				// the running call.
				if got, most := all.alive(), 2*keys+2*largeChunk; got > most {
					t.Errorf("%d of %d states are alive, want at most %d", got, len(all), most)
				}
				if st := h.Stats(); !st.Behind || st.Unseen != 0 || st.Pending > 2*keys+largeChunk {
					t.Errorf("%+v, want behind, nothing unseen, at most an add and an update for each key", st)
				}
				if fast != rounds*keys {
					t.Errorf("the other handler was called %d times, want %d", fast, rounds*keys)
				}
				runtime.KeepAlive(state)
				h.release()
				synctest.Wait()
				if st := h.Stats(); st.Behind || st.Pending != 0 || h.err != nil {
					t.Errorf("after catching up: %+v, %v", st, h.err)
				}
			})
		})
	}
}

func TestP10_IdleLogRetainsNothing(t *testing.T) {
	for _, size := range []int{1, smallChunk, largeChunk, 3000} {
		inBubble(t, func(t *testing.T, r *rig) {
			var late []*Subscription[*object]
			for range 3 {
				s, err := r.log.Subscribe(func(change.Change[*object]) {}, nil, SubscriptionOptions{})
				if err != nil {
					t.Fatal(err)
				}
				late = append(late, s)
			}
			blocked := r.join(true, SubscriptionOptions{})
			var all census
			for range 5 {
				batch := make([]change.Change[*object], size)
				for i := range batch {
					batch[i] = change.Change[*object]{Type: change.Added, Key: "a", New: &object{uid: "u"}}
					all.add(batch[i].New)
				}
				r.log.Publish(batch, 1)
			}
			synctest.Wait()
			blocked.Remove()
			blocked.release()
			synctest.Wait()
			blocked.witness = nil
			if n := all.alive(); n != 0 {
				t.Errorf("batches of %d: %d objects alive with idle handlers", size, n)
			}
			for _, s := range late {
				s.Remove()
			}
			r.publish("a", modify)
			all.add(r.state["a"])
			r.cluster = newCluster()
			if n := all.alive(); n != 0 {
				t.Errorf("batches of %d: %d objects alive without a handler", size, n)
			}
		})
	}
}

// TestP10_OnlyBeyondTheLimit has two live keys: they add to the default limit, and not to one
// that is given.
func TestP10_OnlyBeyondTheLimit(t *testing.T) {
	for given, most := range map[int]int{3: 3, 0: defaultLimit + 2} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.publish("a", modify)
			r.publish("b", modify)
			r.marked()
			h := r.join(true, SubscriptionOptions{Limit: given})
			h.step(2)
			r.publish("a", modify)
			synctest.Wait() // its call is running: what comes after it is not of its run
			for range most - 1 {
				r.publish("a", modify)
			}
			if st := h.Stats(); st.Behind || st.Pending != most {
				t.Errorf("Limit %d: %+v, want %d pending, not behind", given, st, most)
			}
			r.publish("a", modify)
			if st := h.Stats(); !st.Behind {
				t.Errorf("Limit %d, beyond it: %+v, want behind", given, st)
			}
			r.finish(h)
			if h.Stats().Folded == 0 {
				t.Errorf("Limit %d: nothing was folded", given)
			}
		})
	}
}

func TestP10_LargestLimitIsNeverPassed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.marked()
		h := r.join(true, SubscriptionOptions{Limit: math.MaxInt})
		r.publish("a", modify, modify, modify)
		if st := h.Stats(); st.Behind {
			t.Errorf("with 3 pending of at most %d: %+v, want not behind", math.MaxInt, st)
		}
		r.finish(h)
	})
}

func TestP10_AddsOfTheFirstListDoNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(true, SubscriptionOptions{Limit: 2})
		for i := range 1000 {
			r.log.Publish(r.do("k"+strconv.Itoa(i), modify), 0)
		}
		r.marked()
		r.log.Publish(r.do("k0", modify), 0)
		r.log.Publish(r.do("k0", modify), 0)
		if st := h.Stats(); st.Behind || st.Pending != 1002 || st.Initial != 1000 {
			t.Errorf("%+v, want 1002 pending, 1000 of them initial, not behind", st)
		}
		r.log.Publish(r.do("k0", modify), 0)
		if st := h.Stats(); !st.Behind || st.Initial != 1000 {
			t.Errorf("%+v, want behind", st)
		}
		r.finish(h)
	})
}

func TestP10_ChurnUnseen(t *testing.T) {
	for _, policy := range []Policy{ConflateUpdates, ConflateState} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.marked()
			h := r.join(true, SubscriptionOptions{Policy: policy, Limit: 10})
			const objects = 5000
			r.publish("first", modify)
			synctest.Wait() // its call is running
			for i := range objects {
				r.publish("k"+strconv.Itoa(i), modify, modify, modify, remove)
				if st := h.Stats(); policy == ConflateState && st.Pending > 10+largeChunk {
					t.Fatalf("ConflateState: %d pending", st.Pending)
				}
			}
			st := h.Stats()
			unseen, leftOut := st.Unseen, int(st.LeftOut)
			if policy == ConflateState {
				unseen, leftOut = leftOut, unseen
			}
			if unseen < objects-10 || leftOut != 0 {
				t.Errorf("%v: %+v, want at least %d counted as unseen or left out", policy, st, objects-10)
			}
			r.finish(h)
			if got := h.Stats().LeftOut; got != st.LeftOut {
				t.Errorf("%v: %d left out when it has caught up, %d before", policy, got, st.LeftOut)
			}
		})
	}
}

// The publisher finds a backlog too long, and until it has the lock to fold it,
// the handler has seen everything and waits.
func TestP10_NothingIsLeftToFold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(false, SubscriptionOptions{})
		r.publish("a", modify)
		synctest.Wait()
		r.log.mu.Lock()
		h.detachLocked(0)
		r.log.mu.Unlock()
		if h.Stats().Behind {
			t.Error("an idle handler was given a backlog of its own, with nobody to drain it")
		}
		r.publish("a", modify)
		r.finish(h)
		h.Remove()
		if r.log.attach(h.Subscription); r.log.attached != 0 {
			t.Error("a handler that was removed meanwhile reads the log again")
		}
	})
}

// Every subscription looks idle by the count, but one is about to find that it
// is not, or has not returned from the run that it took last.
func TestP10_ReclaimLooksTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(true, SubscriptionOptions{})
		r.log.Publish(append(r.do("a", modify), r.do("b", modify)...), 2)
		synctest.Wait() // its call is running
		for range 2 {
			r.log.mu.Lock()
			busy := r.log.busy.Swap(0)
			r.log.reclaimLocked()
			r.log.busy.Store(busy)
			r.log.mu.Unlock()
			r.publish("a", modify)
		}
		r.finish(h)
	})
}

func TestP10_BlockWaitsForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.marked()
		h := r.join(true, SubscriptionOptions{Name: "slow", Policy: Block, Limit: 3})
		r.publish("a", modify, modify)
		if err := r.log.AwaitRoom(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.publish("a", modify)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.log.AwaitRoom(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"slow"`) {
			t.Errorf("full: %v, want the deadline and the handler's name", err)
		}
		if room := r.awaitRoom(t); room() {
			t.Error("room while the handler is at its limit")
		} else if h.step(1); !room() {
			t.Error("no room after a call has returned")
		}
		r.publish("a", modify)
		room := r.awaitRoom(t)
		h.Remove()
		if synctest.Wait(); !room() {
			t.Error("a removed handler takes up room")
		}
		h.release()
		if st := h.Stats(); st.Folded != 0 || st.Behind {
			t.Errorf("%+v, want nothing folded", st)
		}
	})
}

// A handler that is removed takes no other one's room.
func TestP10_BlockHoldsForTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.marked()
		gone := r.join(true, SubscriptionOptions{Policy: Block, Limit: 1})
		stays := r.join(true, SubscriptionOptions{Policy: Block, Limit: 1})
		other := r.join(false, SubscriptionOptions{})
		r.publish("a", modify)
		gone.Remove()
		other.Remove()
		if room := r.awaitRoom(t); room() {
			t.Error("room while the other handler is at its limit")
		} else if stays.step(1); !room() {
			t.Error("no room after its call has returned")
		}
		gone.release()
	})
}

// A log that nobody reads any more, for its handler has a backlog, keeps no object.
func TestP10_LogOfABacklogRetainsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(true, SubscriptionOptions{Limit: 10})
		var all census
		var batch []change.Change[*object]
		state := &object{uid: "u"}
		for range 4 * largeChunk {
			next := &object{uid: "u"}
			batch = append(batch, change.Change[*object]{Type: change.Updated, Key: "k", Old: state, New: next})
			all.add(next)
			state = next
		}
		r.log.Publish(batch[:1], 1)
		synctest.Wait()
		r.log.Publish(batch[1:], 1)
		clear(batch)
		if got := all.alive(); got > smallChunk+2 {
			t.Errorf("%d of %d states are alive, want the newest and the chunk of the running call", got, len(all))
		}
		runtime.KeepAlive(state)
		runtime.KeepAlive(r.log)
		h.release()
	})
}

// awaitRoom waits for room elsewhere and returns whether there is some.
func (r *rig) awaitRoom(t *testing.T) func() bool {
	got := make(chan error, 1)
	go func() { got <- r.log.AwaitRoom(t.Context()) }()
	synctest.Wait()
	return func() bool {
		select {
		case err := <-got:
			return err == nil
		default:
			return false
		}
	}
}

func TestP10_BlockEndsWithTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(true, SubscriptionOptions{Policy: Block, Limit: 1})
		r.initial = false
		r.publish("a", modify, modify)
		got := make(chan error, 1)
		go func() { got <- r.log.AwaitRoom(t.Context()) }()
		synctest.Wait()
		r.log.Close()
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
		if err := r.log.AwaitRoom(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: error %v, want ErrClosed", err)
		}
		h.release()
	})
}
