package delta_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

func TestNewNamesTheBadOption(t *testing.T) {
	known := newCache(t).known
	for _, test := range []struct {
		options delta.Options[*object]
		want    string
	}{
		{delta.Options[*object]{}, "Options.Known is nil"},
		{delta.Options[*object]{Known: known, Limit: -2}, "Options.Limit is -2"},
		{delta.Options[*object]{Known: known, Partitions: []string{"b/", "a/", "b/"}}, `Options.Partitions: delta: partitions overlap: "b/" with "b/"`},
		{delta.Options[*object]{Known: known, Partitions: []string{"a/", ""}}, `partitions overlap: "a/" with ""`},
		{delta.Options[*object]{Known: known, Partitions: []string{"ab/", "z", "a"}}, `partitions overlap: "ab/" with "a"`},
	} {
		q, err := delta.New(test.options)
		if q != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
}

func TestP20_ForeignKeysAreRefusedByName(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"n1/", "n2/"}})
	good, foreign, empty := state("n1/a", 1, "A"), state("n2/b", 1, "B"), state("", 1, "C")
	for _, test := range []struct {
		object *object
		want   string
	}{{foreign, `"n2/b"`}, {empty, `""`}} {
		err := r.Push(t.Context(), "n1/", "1", []delta.Event[*object]{set(good), set(test.object)})
		if !errors.Is(err, delta.ErrForeignKey) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Push: %v", err)
		}
		err = r.Replace(t.Context(), "n1/", "1", items(good, test.object), delta.ReplaceOptions{})
		if !errors.Is(err, delta.ErrForeignKey) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Replace: %v", err)
		}
	}
	for name, err := range map[string]error{
		"Push":     r.Push(t.Context(), "n3/", "1", nil),
		"Replace":  r.Replace(t.Context(), "n3/", "1", nil, delta.ReplaceOptions{}),
		"Bookmark": r.Bookmark(t.Context(), "n3/", "1"),
	} {
		if !errors.Is(err, delta.ErrUnknownPartition) || !strings.Contains(err.Error(), `"n3/"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := r.Push(t.Context(), "n1/", "1", []delta.Event[*object]{{Item: item(good)}})
	if err == nil || !strings.Contains(err.Error(), `"n1/a"`) || !strings.Contains(err.Error(), "none of Set, Delete, Gone and Merged") {
		t.Errorf("event type 0: %v", err)
	}
	if err := r.Pop(t.Context(), nil); err == nil {
		t.Error("Pop(nil) succeeded")
	}
	if r.Len() != 0 {
		t.Error("a refused call left something behind")
	}
}

func TestPopWaitsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{})
		popped := make(chan taken)
		go func() { popped <- r.pop() }()
		synctest.Wait()
		r.push(set(state("a", 1, "A")))
		if got := <-popped; !slices.Equal(got.deltas, []string{"+a@1#A"}) {
			t.Errorf("deltas %q", got.deltas)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := r.Pop(ctx, func(*delta.Batch[*object]) { t.Error("a batch out of nothing") })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Pop: %v", err)
		}
		r.push(set(state("b", 2, "B")))
		if err := r.Pop(ctx, func(*delta.Batch[*object]) { t.Error("a batch after the context ended") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Pop: %v", err)
		}
		r.expect("+b@2#B")
	})
}

func TestPopPassesOverWhatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{}, state("a", 5, "A"))
		r.must(r.Push(t.Context(), "", "", []delta.Event[*object]{set(state("a", 4, "A"))}))
		popped := make(chan taken)
		go func() { popped <- r.pop() }()
		synctest.Wait()
		if r.Len() != 0 || r.Stale() != 1 {
			t.Errorf("Len %d, Stale %d", r.Len(), r.Stale())
		}
		r.push(set(state("a", 6, "A")))
		if got := <-popped; len(got.deltas) != 1 {
			t.Errorf("deltas %q", got.deltas)
		}
	})
}

// A batch that is larger than the arrays that are kept for reuse is handed on once.
func TestLargeBatchIsHandedOnOnce(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	var changes []delta.Event[*object]
	var objects []*object
	for i := range 5000 {
		objects = append(objects, state(fmt.Sprint("k", i), i+1, "U"))
		changes = append(changes, set(objects[i]))
	}
	r.push(changes...)
	if got := r.pop(); len(got.deltas) != len(changes) {
		t.Fatalf("%d deltas, want %d", len(got.deltas), len(changes))
	}
	r.push(set(state("last", 6000, "U")))
	r.expect("+last@6000#U")
	r.expectStale(0)
	r = newRig(t, delta.Options[*object]{}, state("a", 1, "A"))
	r.list("6000", append(objects, state("a", 2, "A"))...)
	if got := r.pop(); len(got.deltas) != len(changes)+1 {
		t.Fatalf("%d deltas of a list, want %d", len(got.deltas), len(changes)+1)
	}
}

func TestPopIsForOneConsumer(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.push(set(state("a", 1, "A")))
	r.process(func(*delta.Batch[*object]) {
		if err := r.Pop(t.Context(), func(*delta.Batch[*object]) {}); !errors.Is(err, delta.ErrBusy) {
			t.Errorf("Pop in Pop: %v", err)
		}
		r.push(set(state("b", 2, "B"))) // producers are free meanwhile
	})
	r.expect("+b@2#B")
}

func TestBookmarksCoalesce(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"n1/", "n2/"}})
	bookmark := func(partition, version string) {
		t.Helper()
		r.must(r.Bookmark(t.Context(), partition, version))
	}
	for version := 5; version < 50; version++ {
		bookmark("n1/", fmt.Sprint(version))
	}
	bookmark("n2/", "7")
	bookmark("n2/", "") // says nothing
	bookmark("n2/", "6")
	got := r.expect()
	if want := []delta.Mark{{Partition: "n1/", Version: "49"}, {Partition: "n2/", Version: "7"}}; !slices.Equal(got.marks, want) {
		t.Errorf("marks %v, want %v", got.marks, want)
	}
	r.pushTo("n1/", set(state("n1/a", 55, "A")))
	bookmark("n1/", "70")
	if got := r.expect("+n1/a@55#A"); got.marks[0].Version != "70" {
		t.Errorf("marks %v", got.marks)
	}
}

func TestP12_ResyncStandsInOrder(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	resync := func(token any) {
		t.Helper()
		r.must(r.Resync(token))
	}
	r.push(set(state("a", 1, "A")))
	resync("one")
	resync("two")
	r.push(set(state("a", 2, "A")))
	r.list("5", state("a", 2, "A"))
	resync("three")
	r.push(set(state("a", 6, "A")))
	for _, want := range []taken{
		{deltas: []string{"+a@1#A"}, resync: []any{"one", "two"}},
		{deltas: []string{"a@1#A>a@2#A"}},
		{deltas: []string{}, resync: []any{"three"}},
		{deltas: []string{"a@2#A>a@6#A"}},
	} {
		got := r.expect(want.deltas...)
		if !slices.Equal(got.resync, want.resync) {
			t.Errorf("after %q: resync %v, want %v", want.deltas, got.resync, want.resync)
		}
	}
	resync("alone")
	if got := r.expect(); !slices.Equal(got.resync, []any{"alone"}) {
		t.Errorf("resync %v", got.resync)
	}
}

func TestPushCopiesChanges(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	changes := []delta.Event[*object]{set(state("a", 1, "A"))}
	r.push(changes...)
	changes[0] = set(state("b", 2, "B"))
	r.expect("+a@1#A")
}

func TestP09_CloseEndsEveryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{Limit: 1})
		ended := make(chan error)
		go func() { ended <- r.Pop(t.Context(), func(*delta.Batch[*object]) {}) }()
		synctest.Wait()
		r.Close()
		if err := <-ended; !errors.Is(err, delta.ErrClosed) {
			t.Errorf("Pop: %v", err)
		}
		r = newRig(t, delta.Options[*object]{Limit: 1})
		r.push(set(state("a", 1, "A")))
		go func() { ended <- r.Push(t.Context(), "", "2", []delta.Event[*object]{set(state("a", 2, "A"))}) }()
		go func() { ended <- r.Replace(t.Context(), "", "3", nil, delta.ReplaceOptions{}) }()
		go func() { ended <- r.Bookmark(t.Context(), "", "3") }()
		synctest.Wait()
		r.Close()
		r.Close()
		for range 3 {
			if err := <-ended; !errors.Is(err, delta.ErrClosed) {
				t.Errorf("a producer: %v", err)
			}
		}
		for name, err := range map[string]error{
			"Push":    r.Push(t.Context(), "", "2", nil),
			"Replace": r.Replace(t.Context(), "", "3", nil, delta.ReplaceOptions{}),
			"Resync":  r.Resync(1),
			"Pop":     r.Pop(t.Context(), func(*delta.Batch[*object]) { t.Error("a batch after Close") }),
		} {
			if !errors.Is(err, delta.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r.Len() != 0 {
			t.Errorf("Len %d", r.Len())
		}
	})
}

func TestP09_CloseLetsTheBatchInProcessCount(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.list("5", state("a", 1, "A"))
	r.process(func(*delta.Batch[*object]) {
		r.push(set(state("a", 6, "A")))
		r.Close()
	})
	if r.reached[""] != "5" || !r.synced || r.Len() != 0 {
		t.Errorf("version %q, synced %v, Len %d", r.reached[""], r.synced, r.Len())
	}
}

func TestP11_PanicPassesThroughAndClosesTheQueue(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic("boom") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, delta.Options[*object]{})
			r.list("5", state("a", 1, "A"))
			r.push(set(state("a", 6, "A")))
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				_ = r.Pop(t.Context(), func(*delta.Batch[*object]) { end() })
			}()
			if v := <-ended; name == "panic" && v != "boom" {
				t.Errorf("recovered %v", v)
			}
			if r.Len() != 1 {
				t.Errorf("Len %d: the lost batch should count", r.Len())
			}
			for _, err := range []error{
				r.Push(t.Context(), "", "7", nil),
				r.Pop(t.Context(), func(*delta.Batch[*object]) { t.Error("handed out again") }),
			} {
				if !errors.Is(err, delta.ErrClosed) || !strings.Contains(err.Error(), "batch of 1 change") {
					t.Errorf("error %v", err)
				}
			}
		})
	}
}
