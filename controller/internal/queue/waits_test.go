package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaits has a key in each state, and one that waits for a requeue.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{Workers: 1, FirstDelay: time.Minute, Jitter: func() float64 { return 0 }})
		defer q.Close()
		end := func(key string, o Outcome) {
			q.Add(key, Ask[int]{})
			item, ok := q.Get(0, nil)
			if !ok || item.Key != key {
				t.Fatalf("got %q, want %q", item.Key, key)
			}
			if err := q.Done(item, o); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		end("a/fails", Outcome{Result: Retry})
		end("a/parked", Outcome{Result: Park})
		end("a/again", Outcome{After: time.Hour})
		q.Add("a/runs", Ask[int]{})
		if item, _ := q.Get(0, nil); item.Key != "a/runs" {
			t.Fatalf("got %q", item.Key)
		}
		for _, key := range []string{"a/1", "a/2", "b/1"} {
			q.Add(key, Ask[int]{Band: Background})
			time.Sleep(time.Second)
		}
		q.Add("a/urgent", Ask[int]{Band: Changes})
		q.Add("a/2", Ask[int]{Band: Changes}) // it rises, and waits since before
		var got []string
		for _, w := range q.Waits(2) {
			got = append(got, fmt.Sprint(w.Key, " ", w.State, " ", w.For, " ", w.Next))
		}
		want := []string{
			"a/1 Queued 3s 0s", "a/2 Queued 2s 0s", "a/fails BackingOff 6s 54s", "a/parked Parked 5s 0s",
			"a/runs Running 3s 0s",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for key, want := range map[string]Wait{
			"a/urgent": {State: Queued, Band: Changes, Flow: "a", Limited: true},
			"a/2":      {State: Queued, Band: Changes, Flow: "a", Limited: true, Place: 1, For: 2 * time.Second},
			"a/1":      {State: Queued, Band: Background, Flow: "a", Limited: true, Place: 2, For: 3 * time.Second},
			"a/again":  {State: Idle, For: 4 * time.Second, Next: time.Hour - 4*time.Second, Timed: true},
			"a/fails":  {State: BackingOff, For: 6 * time.Second, Failures: 1, Next: 54 * time.Second, Timed: true},
		} {
			want.Key = key
			if got, ok := q.Wait(key); !ok || got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		if _, ok := q.Wait("a/none"); ok {
			t.Error("a key of which nothing is requested waits")
		}
	})
}
