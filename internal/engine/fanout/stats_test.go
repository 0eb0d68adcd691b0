package fanout

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// Notifications that a handler has taken from its backlog and not returned from are pending.
func TestStatsCountTheRunOfABacklog(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.marked()
		h := r.join(true, SubscriptionOptions{Limit: 2})
		for i := range 10 {
			r.publish("k"+strconv.Itoa(i), modify)
			r.publish("k"+strconv.Itoa(i), remove)
		}
		for returned := range 20 {
			synctest.Wait()
			st := h.Stats()
			if st.Pending != 20-returned || st.Initial != 0 || int(st.Delivered) != returned {
				t.Fatalf("after %d calls: %+v", returned, st)
			}
			h.step(1)
		}
		r.finish(h)
	})
}

// Calls of a slow handler are stamped from the first of a run on.
func TestStatsStampTheNextRunOfASlowHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h, err := r.log.Subscribe(func(change.Change[*object]) { time.Sleep(10 * time.Second) }, nil, SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r.publish("first", modify)
		synctest.Wait()
		for i := range 5 {
			r.publish("k"+strconv.Itoa(i), modify)
		}
		time.Sleep(5 * time.Second)
		for i := range 5 {
			time.Sleep(10 * time.Second)
			key, since := "k"+strconv.Itoa(i), time.Duration(i+1)*10*time.Second
			if st := h.Stats(); st.Key != key || st.Since.Sub(start) != since {
				t.Errorf("running %q since %v, want %s since %v", st.Key, st.Since.Sub(start), key, since)
			}
		}
		time.Sleep(time.Hour)
	})
}

func TestStatsSayWhatRunsAndSinceWhen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		s, err := r.log.Subscribe(func(n change.Change[*object]) {
			time.Sleep(10 * time.Second)
		}, nil, SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var batch []change.Change[*object]
		for i := range 2 * stampEvery {
			batch = append(batch, r.do("k"+strconv.Itoa(i), modify)...)
		}
		r.log.Publish(batch, len(r.state))
		// The first of the slow calls share a stamp; from then on each has its own.
		for _, call := range []int{stampEvery - 1, stampEvery, stampEvery + 3} {
			time.Sleep(time.Until(start.Add(time.Duration(call)*10*time.Second + 4*time.Second)))
			want := start
			if call >= stampEvery {
				want = start.Add(time.Duration(call) * 10 * time.Second)
			}
			if st := s.Stats(); st.Key != "k"+strconv.Itoa(call) || !st.Since.Equal(want) {
				t.Errorf("running %q since %v, want k%d since %v", st.Key, st.Since, call, want)
			}
		}
		time.Sleep(time.Hour)
		if st := s.Stats(); st.Key != "" || !st.Since.IsZero() || st.Delivered != 2*stampEvery {
			t.Errorf("idle: %+v", st)
		}
	})
}

// Each call of a slow handler is counted with its own duration, and pauses are not.
func TestStatsCountTheDurationsOfCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var took atomic.Int64
		s, err := r.log.Subscribe(func(change.Change[*object]) {
			time.Sleep(time.Duration(took.Load()))
		}, nil, SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		for i, d := range []time.Duration{0, time.Second, 3 * time.Second, time.Second} {
			took.Store(int64(d))
			r.publish("k"+strconv.Itoa(i), modify)
			r.publish("l"+strconv.Itoa(i), modify)
			time.Sleep(time.Minute)
			sum += 2 * d
		}
		calls := s.Stats().Calls
		if calls.Sum != sum || calls.Count() != 8 || calls.Counts[20] != 4 || calls.Counts[22] != 2 {
			t.Errorf("8 calls of %v together are counted as %+v", sum, calls)
		}
	})
}
