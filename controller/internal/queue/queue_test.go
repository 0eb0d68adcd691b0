package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// worker takes keys until the queue sends it away. It ends each run with the outcome of do.
func worker(t *testing.T, q *Queue[int], n int, do func(Item[int]) Outcome) (left <-chan struct{}) {
	end := make(chan struct{})
	go func() {
		defer close(end)
		for {
			item, ok := q.Get(n, nil)
			if !ok {
				return
			}
			if err := q.Done(item, do(item)); err != nil {
				t.Error(err)
			}
		}
	}()
	return end
}

// TestDelays follows a key through a requeue, failures and a park in virtual time.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{
			Requeued: 100, Retried: 101, FirstDelay: time.Second, Jitter: func() float64 { return 0 },
		})
		began := time.Now()
		var runs []string
		outcomes := []Outcome{
			{After: time.Minute}, {Result: Retry}, {Result: Retry}, {Result: Retry, After: time.Hour},
			{Result: Park}, {Result: Fail},
		}
		left := worker(t, q, 0, func(item Item[int]) Outcome {
			runs = append(runs, fmt.Sprintf("%v %v failures=%d",
				time.Since(began), item.Reasons, item.Failures))
			return outcomes[len(runs)-1]
		})
		q.Add("a/x", Ask[int]{Reason: 1})
		time.Sleep(2 * time.Hour)
		q.Wake("a/x")
		synctest.Wait()
		want := []string{
			"0s [{1 1}] failures=0",
			"1m0s [{100 1}] failures=0",
			"1m1s [{101 1}] failures=1",
			"1m3s [{101 1}] failures=2",
			"1h1m3s [{101 1}] failures=3",
			"2h0m0s [{101 1}] failures=3",
		}
		if !slices.Equal(runs, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(runs, "\n"), strings.Join(want, "\n"))
		}
		if _, ok := q.s.index.get("a/x"); ok {
			t.Error("a key that waits for nothing is kept")
		}
		q.Close()
		<-left
	})
}

// TestChangeEndsABackoff: a change makes a failed key ready after the first delay, the echo of
// an own write does not, and neither ends a wait that a server has requested.
func TestChangeEndsABackoff(t *testing.T) {
	for name, row := range map[string]struct {
		failure Outcome
		ask     Ask[int]
		want    time.Duration
	}{
		"change":                {Outcome{Result: Retry}, Ask[int]{}, 3 * time.Second},
		"echo":                  {Outcome{Result: Retry}, Ask[int]{Echo: true}, 4 * time.Second},
		"resync":                {Outcome{Result: Retry}, Ask[int]{Band: Background}, 4 * time.Second},
		"change in Retry-After": {Outcome{Result: Retry, After: time.Hour}, Ask[int]{}, time.Hour + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(Options[int]{FirstDelay: time.Second, Jitter: func() float64 { return 0 }})
				outcomes := []Outcome{{Result: Retry, After: time.Second}, row.failure, {}}
				var last time.Time
				left := worker(t, q, 0, func(Item[int]) Outcome {
					last = time.Now()
					o := outcomes[0]
					outcomes = outcomes[1:]
					return o
				})
				began := time.Now()
				q.Add("x", Ask[int]{})
				time.Sleep(2 * time.Second) // the second failure was after one second
				q.Add("x", row.ask)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if got := last.Sub(began); got != row.want-time.Second {
					t.Errorf("the last run was after %v, want %v", got, row.want-time.Second)
				}
				q.Close()
				<-left
			})
		})
	}
}

// TestChangeDuringARun: a change that came during a run ends the wait after its failure, and an
// echo does not.
func TestChangeDuringARun(t *testing.T) {
	for _, echo := range []bool{true, false} {
		s := newSchedule(modelOptions())
		s.add(0, "x", Ask[int]{})
		first, _ := s.take(0, nil)
		if err := s.done(0, first, Outcome{Result: Retry}); err != nil {
			t.Fatal(err)
		}
		s.expire(2 * second)
		again, _ := s.take(2*second, nil)
		s.add(2*second, "x", Ask[int]{Echo: echo})
		if err := s.done(2*second, again, Outcome{Result: Retry}); err != nil {
			t.Fatal(err)
		}
		wait := 2 * modelOptions().FirstDelay
		if !echo {
			wait = modelOptions().FirstDelay
		}
		if due, _ := s.timers.due(again.entry); due != 2*second+int64(wait) {
			t.Errorf("echo %v: the wait ends at %v, want %v", echo, time.Duration(due), wait)
		}
	}
}

// TestC04_BoundOfStarts: with F active flows a key starts after at most F × (keys of its flow that
// were queued before it, or within two steps after it) other starts, plus one running call.
func TestC04_BoundOfStarts(t *testing.T) {
	const steps = 20 // seconds: two steps
	for seed := range 50 {
		s := newSchedule(Options[int]{Workers: 1 + seed%5}.withDefaults())
		busy := 1 + seed%7
		type queued struct {
			at, starts, own int
			flow            string
			band            Band
		}
		waiting := map[string]*queued{}
		var running []Item[int]
		starts := 0
		for now := range 400 {
			at := int64(now) * second
			for n := range busy { // one flow is steadily busier than the others together
				flow := []string{"loud", "loud", "loud", fmt.Sprint("quiet-", n)}[(now+n)%4]
				key := fmt.Sprintf("%s/%d", flow, (now*7+n*3)%23)
				band := Band((now + n) % bands)
				if waiting[key] == nil {
					own := 0
					for _, w := range waiting {
						if w.flow == flow {
							own++
						}
					}
					waiting[key] = &queued{at: now, starts: starts, own: own, flow: flow, band: band}
				}
				for other, w := range waiting {
					if w.flow == flow && other != key && now-w.at <= steps && waiting[key].at == now {
						w.own++
					}
				}
				s.add(at, key, Ask[int]{Band: band})
			}
			for range 1 + seed%3 {
				if len(running) >= s.workers {
					if err := s.done(at, running[0], Outcome{}); err != nil {
						t.Fatal(err)
					}
					running = running[1:]
				}
				item, ok := s.take(at, nil)
				if !ok {
					continue
				}
				starts++
				running = append(running, item)
				w := waiting[item.Key]
				delete(waiting, item.Key)
				const flows = 8 // loud and seven quiet ones
				if w != nil && starts-1-w.starts > flows*(w.own+1)+len(running) {
					t.Fatalf("seed %d: %s, with %d of its flow, started after %d others", seed, item.Key,
						w.own, starts-1-w.starts)
				}
			}
		}
	}
}

// TestC04_OneFlowLeavesAWorker: a flow with many keys holds all workers but one, for a minute after a key of
// another flow has started. Then it has all of them, until a key of another flow comes.
func TestC04_OneFlowLeavesAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{Workers: 3})
		gate := make(chan struct{})
		started := make(chan string, 10)
		var left []<-chan struct{}
		for n := range 3 {
			left = append(left, worker(t, q, n, func(item Item[int]) Outcome {
				started <- item.Key
				<-gate
				return Outcome{}
			}))
		}
		runs := func(want ...string) {
			t.Helper()
			synctest.Wait()
			for _, key := range want {
				select {
				case got := <-started:
					if got != key {
						t.Errorf("%s has started, want %s", got, key)
					}
				default:
					t.Errorf("%s has not started", key)
				}
			}
			if len(started) > 0 {
				t.Errorf("%s has started too", <-started)
			}
		}
		q.Add("quiet/0", Ask[int]{})
		runs("quiet/0")
		gate <- struct{}{}
		for n := range 5 {
			q.Add(fmt.Sprint("loud/", n), Ask[int]{})
		}
		runs("loud/0", "loud/1")
		time.Sleep(alone - time.Second)
		runs()
		if st := q.Stats(); st.Oldest != "loud/2" || !st.Limited {
			t.Errorf("stats %+v, want that the flow of loud/2 leaves a worker to others", st)
		}
		time.Sleep(time.Second)
		runs("loud/2")
		q.Add("quiet/1", Ask[int]{})
		runs()
		gate <- struct{}{}
		runs("quiet/1")
		if st := q.Stats(); st.Running != 3 || st.Queued != [bands]int{2, 0, 0} ||
			len(st.Flows) != 1 || st.Flows[0] != (FlowStats{"loud", 2, 2}) {
			t.Errorf("stats %+v, want a quiet key beside two loud ones", st)
		}
		close(gate)
		synctest.Wait()
		q.Close()
		for _, l := range left {
			<-l
		}
	})
}

// TestWorkersChange: workers beyond a smaller number leave without a key.
func TestWorkersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{Workers: 4})
		var left []<-chan struct{}
		for n := range 4 {
			left = append(left, worker(t, q, n, func(Item[int]) Outcome { return Outcome{} }))
		}
		synctest.Wait()
		q.SetWorkers(1)
		synctest.Wait()
		for n, l := range left {
			select {
			case <-l:
				if n == 0 {
					t.Error("the remaining worker has left")
				}
			default:
				if n > 0 {
					t.Errorf("worker %d has not left", n)
				}
			}
		}
		q.Add("x", Ask[int]{})
		synctest.Wait()
		if st := q.Stats(); st.Queued != [bands]int{} {
			t.Errorf("a key stays queued: %+v", st)
		}
		q.Close()
		<-left[0]
		q.Add("x", Ask[int]{})
		q.Requeue("y")
		if st := q.Stats(); st.Queued != [bands]int{} {
			t.Errorf("a closed queue takes keys: %+v", st)
		}
	})
}

// TestDoneOfNothing: Done is an error for a key that does not run.
func TestDoneOfNothing(t *testing.T) {
	q := New(Options[int]{})
	q.Add("x", Ask[int]{})
	item, _ := q.Get(0, nil)
	if err := q.Done(item, Outcome{}); err != nil {
		t.Error(err)
	}
	if err := q.Done(item, Outcome{}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("the second Done returned %v, want an error with the key", err)
	}
}

// TestRequeue: a requeue survives the end of the run that it came in.
func TestRequeue(t *testing.T) {
	q := New(Options[int]{Requeued: 7})
	q.Add("x", Ask[int]{})
	item, _ := q.Get(0, nil)
	q.Requeue("x")
	if err := q.Done(item, Outcome{After: time.Hour}); err != nil {
		t.Error(err)
	}
	item, _ = q.Get(0, nil)
	if item.Key != "x" || item.Band != Requeues || len(item.Reasons) != 1 || item.Reasons[0].Reason != 7 {
		t.Errorf("got %+v", item)
	}
}

// TestWakeAll queues parked keys, and no others.
func TestWakeAll(t *testing.T) {
	q := New(Options[int]{Workers: 4})
	var items []Item[int]
	for _, key := range []string{"x", "y", "z"} {
		q.Add(key, Ask[int]{})
		item, _ := q.Get(0, nil)
		items = append(items, item)
	}
	for i, result := range []Result{Park, Park, Retry} {
		if err := q.Done(items[i], Outcome{Result: result}); err != nil {
			t.Error(err)
		}
	}
	if n := q.Failures("z"); n != 1 {
		t.Errorf("%d failures, want 1", n)
	}
	q.WakeAll()
	if st := q.Stats(); st.Parked != 0 || st.BackingOff != 1 || q.Failures("none") != 0 {
		t.Errorf("stats: %+v", st)
	}
	for _, want := range []string{"x", "y"} {
		if item, _ := q.Get(0, nil); item.Key != want {
			t.Errorf("got %q, want %q", item.Key, want)
		}
	}
}
