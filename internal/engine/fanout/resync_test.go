package fanout

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// replay replays the cache to the subscriptions that are due, as a publisher does.
func (r *rig) replay() int {
	due := r.log.DueForResync(time.Now())
	for _, s := range due {
		r.log.Replay(s, items(r.snapshot()))
	}
	return len(due)
}

func resyncs(w *witness) (keys []string) {
	for _, n := range w.seen {
		if n.Resync {
			keys = append(keys, n.Key)
		}
	}
	return keys
}

func TestP12_ReplayStandsInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h, other := r.join(true, SubscriptionOptions{}), r.join(false, SubscriptionOptions{})
		r.publish("a", modify)
		r.publish("b", modify)
		r.log.Replay(h.Subscription, items(r.snapshot()))
		r.publish("a", modify)
		r.log.Replay(h.Subscription, items(r.snapshot())) // one is pending
		r.publish("b", remove)
		if st := h.Stats(); st.Pending != 4 {
			t.Errorf("%d pending, want 4: a replay does not count", st.Pending)
		}
		r.finish(h)
		r.finish(other)
		if got := resyncs(h.witness); !slices.Equal(got, []string{"a", "b"}) || !h.seen[2].Resync || !h.seen[3].Resync {
			t.Errorf("told %v, want the resync of a and b between", h.seen)
		}
		if got := resyncs(other.witness); len(got) != 0 {
			t.Errorf("another handler received the resync: %q", got)
		}
		started(Options[*object]{}).Replay(h.Subscription, items(r.snapshot())) // not its log
		r.log.Replay(h.Subscription, items(r.snapshot()))
		synctest.Wait()
		if got := resyncs(h.witness); len(got) != 3 {
			t.Errorf("an idle handler did not receive a resync: %q", got)
		}
		h.Remove()
		r.log.Replay(h.Subscription, items(r.snapshot()))
		r.log.Replay(nil, items(r.snapshot()))
	})
}

func TestP07_SyncedDoesNotWaitForAResync(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(true, SubscriptionOptions{})
		r.publish("a", modify)
		synctest.Wait() // its call is running
		r.marked()
		r.log.Replay(h.Subscription, items(r.snapshot()))
		h.step(1)
		if st := h.Stats(); !h.HasSynced() || st.Key != "a" || st.Delivered != 1 {
			t.Errorf("synced %v in the resync after the mark: %+v", h.HasSynced(), st)
		}
		r.finish(h)
	})
}

func TestP12_ScheduleKeepsItsOffsets(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if _, ok := r.log.NextResync(); ok {
			t.Error("a resync without a subscription")
		}
		r.join(false, SubscriptionOptions{})
		if _, ok := r.log.NextResync(); ok {
			t.Error("a resync without a period")
		}
		r.publish("a", modify)
		start := time.Now()
		a := r.join(false, SubscriptionOptions{ResyncPeriod: 10 * time.Minute})
		<-r.log.ResyncChanged()
		b := r.join(false, SubscriptionOptions{ResyncPeriod: 10 * time.Minute, ResyncOffset: 3 * time.Minute})
		<-r.log.ResyncChanged()
		for _, want := range []time.Duration{3, 10, 13, 20, 23} {
			next, ok := r.log.NextResync()
			if got := next.Sub(start); !ok || got != want*time.Minute {
				t.Fatalf("next resync after %v, want %v", got, want*time.Minute)
			}
			time.Sleep(time.Until(next) - time.Second)
			if n := r.replay(); n != 0 {
				t.Errorf("%d due a second early", n)
			}
			time.Sleep(2 * time.Second) // a little late: no drift
			if n := r.replay(); n != 1 {
				t.Errorf("%d due, want 1", n)
			}
			synctest.Wait()
		}
		if n, m := len(resyncs(a.witness)), len(resyncs(b.witness)); n != 2 || m != 3 {
			t.Errorf("%d and %d resyncs, want 2 and 3", n, m)
		}
		time.Sleep(time.Hour) // several periods late: one resync each
		if n := r.replay(); n != 2 {
			t.Errorf("%d due after an hour, want 2", n)
		}
		if n := r.replay(); n != 0 {
			t.Errorf("%d due again, want 0", n)
		}
	})
}

func TestP12_SlowHandlerSitsAResyncOut(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.publish("a", modify)
		h := r.join(true, SubscriptionOptions{ResyncPeriod: time.Minute})
		h.step(1)
		for range 5 {
			time.Sleep(time.Minute)
			r.replay()
			synctest.Wait()
		}
		if next, ok := r.log.NextResync(); !ok || !next.After(time.Now()) {
			t.Errorf("next resync %v, want a later one", next)
		}
		r.finish(h)
		if got := resyncs(h.witness); len(got) != 1 {
			t.Errorf("resyncs %q, want the one that was pending", got)
		}
	})
}

// A resync that is owed leaves the schedule as it is, and needs none.
func TestP12_OwedResyncKeepsTheSchedule(t *testing.T) {
	for _, period := range []time.Duration{0, time.Hour} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.marked()
			h := r.join(true, SubscriptionOptions{Limit: 5, ResyncPeriod: period})
			other := r.join(true, SubscriptionOptions{Limit: 5})
			start := time.Now()
			for range 20 {
				r.publish("a", modify)
			}
			r.log.Replay(h.Subscription, items(r.snapshot()))
			r.log.Replay(other.Subscription, nil) // nothing to replay
			time.Sleep(time.Minute)
			r.finish(h)
			r.finish(other)
			<-r.log.ResyncChanged()
			if n := r.replay(); n != 1 {
				t.Errorf("period %v: %d due, want 1", period, n)
			}
			if n := r.replay(); n != 0 {
				t.Errorf("period %v: %d due again", period, n)
			}
			next, ok := r.log.NextResync()
			if ok != (period > 0) || ok && next.Sub(start) != period {
				t.Errorf("period %v: the next resync is %v after the start", period, next.Sub(start))
			}
		})
	}
}

func TestP12_DroppedByConflationAndDueAtOnceAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.marked()
		h := r.join(true, SubscriptionOptions{Limit: 5, ResyncPeriod: time.Hour})
		<-r.log.ResyncChanged()
		r.publish("a", modify)
		time.Sleep(time.Hour)
		if n := r.replay(); n != 1 {
			t.Fatalf("%d due, want 1", n)
		}
		for range 20 {
			r.publish("a", modify)
		}
		if _, ok := r.log.NextResync(); ok || !h.Stats().Behind {
			t.Error("due for resync while behind")
		}
		r.log.Replay(h.Subscription, items(r.snapshot()))
		r.finish(h)
		if got := resyncs(h.witness); len(got) != 0 {
			t.Errorf("resyncs %q of a state that had been folded over", got)
		}
		<-r.log.ResyncChanged()
		if next, ok := r.log.NextResync(); !ok || next.After(time.Now()) {
			t.Errorf("next resync %v, want at once", next)
		}
		if n := r.replay(); n != 1 {
			t.Errorf("%d due, want 1", n)
		}
		r.finish(h)
		if got := resyncs(h.witness); len(got) != 1 {
			t.Errorf("resyncs %q, want one of a", got)
		}
		if next, _ := r.log.NextResync(); time.Until(next) != time.Hour {
			t.Errorf("next resync in %v, want an hour", time.Until(next))
		}
	})
}
