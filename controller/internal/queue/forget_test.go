package queue

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestLate: a long call is late once a change has waited for its end. Its own echo, and requests that
// are no changes, may wait.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{Workers: 1})
		defer q.Close()
		wantLate := func(want ...string) {
			t.Helper()
			if late := q.Late(time.Minute); !slices.Equal(late, want) {
				t.Errorf("late are %q, want %q", late, want)
			}
		}
		for range 2 { // the second run begins with the changes of the first
			q.Add("a/long", Ask[int]{})
			item, _ := q.Get(0, nil)
			q.Add("a/long", Ask[int]{Echo: true})
			q.Add("a/long", Ask[int]{Band: Requeues})
			time.Sleep(time.Hour)
			wantLate()
			q.Add("a/long", Ask[int]{})
			time.Sleep(40 * time.Second)
			q.Add("a/long", Ask[int]{})
			wantLate()
			time.Sleep(40 * time.Second)
			wantLate("a/long")
			if err := q.Done(item, Outcome{}); err != nil {
				t.Fatal(err)
			}
			wantLate()
		}
	})
}

// TestForget forgets a key in each state. No forgotten key is handed out again.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{Workers: 9, FirstDelay: time.Second})
		defer q.Close()
		for key, o := range map[string]Outcome{
			"a/parked": {Result: Park}, "a/fails": {Result: Retry}, "a/requeued": {After: time.Hour},
		} {
			q.Add(key, Ask[int]{Reason: 1})
			item, _ := q.Get(0, nil)
			if err := q.Done(item, o); err != nil {
				t.Fatal(err)
			}
		}
		q.Add("b/running", Ask[int]{})
		running, _ := q.Get(0, nil)
		time.Sleep(time.Minute) // the failed key is queued
		q.Add("b/queued", Ask[int]{})
		if late := q.Late(58 * time.Second); len(late) != 2 || !slices.Contains(late, "a/parked") ||
			!slices.Contains(late, "a/fails") {
			t.Errorf("late are %q", late)
		}
		all := q.All()
		slices.Sort(all)
		if want := []string{"a/fails", "a/parked", "a/requeued", "b/queued", "b/running"}; !slices.Equal(all, want) {
			t.Fatalf("all are %q, want %q", all, want)
		}
		if n := q.Forget(append(all, "c/unknown")); n != 2 {
			t.Errorf("%d queued keys were forgotten, want 2", n)
		}
		if all := q.All(); !slices.Equal(all, []string{"b/running"}) {
			t.Errorf("%q are left", all)
		}
		time.Sleep(2 * time.Hour)
		q.Add("b/running", Ask[int]{})
		if err := q.Done(running, Outcome{}); err != nil {
			t.Error(err)
		}
		if s := q.Stats(); s.Queued != [bands]int{1, 0, 0} || s.Parked+s.BackingOff+s.Running != 0 ||
			len(q.s.timers.heap) != 0 || len(q.s.flows) != 1 {
			t.Errorf("the queue is %+v", s)
		}
	})
}

// TestAPeakIsForgotten: one key that waits for its requeue keeps the memory of its chunk, not that of all keys
// that were queued with it.
func TestAPeakIsForgotten(t *testing.T) {
	const peak = 50 * chunkSize
	s := newSchedule(Options[int]{}.withDefaults())
	for n := range peak {
		s.add(0, fmt.Sprintf("ns%d/%d", n%1000, n), Ask[int]{Reason: n % 3})
	}
	for n := range peak {
		item, _ := s.take(1, nil)
		o := Outcome{}
		if n == peak/2 {
			o.After = time.Hour
		}
		if err := s.done(1, item, o); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	for _, c := range s.entries.chunks {
		if c != nil {
			kept++
		}
	}
	if kept > 1 || s.entries.used != 1 || len(s.index.slots) > minSlots {
		t.Errorf("%d chunks of %d entries and %d places are kept", kept, s.entries.used, len(s.index.slots))
	}
}

// TestC12_AKeyThatRisesHasWaited since it was queued, in whatever band.
func TestC12_AKeyThatRisesHasWaited(t *testing.T) {
	s := newSchedule(Options[int]{}.withDefaults())
	s.add(0, "a/x", Ask[int]{Band: Background})
	s.add(9*second, "a/x", Ask[int]{Band: Changes})
	if item, ok := s.take(10*second, nil); !ok || item.Waited != 10*time.Second || len(s.promoted) > 0 {
		t.Errorf("it has waited %v, and %d are kept", item.Waited, len(s.promoted))
	}
}
