package queue

import (
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
