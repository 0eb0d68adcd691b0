package delta_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

func TestP08_DeletesFirstThenChangesInOneBatch(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("b", 1, "B"), state("c", 1, "C"), state("d", 1, "D"), state("f", 1, "F"), state("g", 1, "G"))
	r.list("10", state("e", 5, "E"), state("a", 6, "A"), state("d", 1, "D"), state("c", 7, "X"), state("b", 8, "B"))
	got := r.expect("-f@1#F/f@1#F i t", "-g@1#G/g@1#G i t", "+a@6#A i", "b@1#B>b@8#B i", "c@1#C>c@7#X i", "+e@5#E i")
	if !got.replaced || !got.synced || len(got.marks) != 1 || got.marks[0].Version != "10" {
		t.Errorf("batch %+v", got)
	}
	r.list("11", state("a", 6, "A"))
	got = r.expect("-b@8#B/b@8#B t", "-c@7#X/c@7#X t", "-d@1#D/d@1#D t", "-e@5#E/e@5#E t")
	if !got.replaced || got.synced {
		t.Errorf("batch %+v", got)
	}
}

func TestP08_ReplaceIsAloneInItsBatch(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.push(set(state("a", 1, "A")))
	r.push(set(state("b", 2, "B")))
	r.list("5", state("b", 2, "B"), state("c", 4, "C"))
	r.push(set(state("d", 6, "D")), set(state("c", 7, "C")))
	if got := r.expect("+a@1#A", "+b@2#B"); got.replaced {
		t.Error("a run is marked as a Replace")
	}
	if got := r.expect("-a@1#A/a@1#A i t", "+c@4#C i"); !got.replaced {
		t.Error("a Replace is not marked")
	}
	r.expect("+d@6#D", "c@4#C>c@7#C")
}

func TestP08_NothingIsReachedBeforeProcessReturns(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.list("5", state("a", 1, "A"), state("b", 2, "B"))
	r.process(func(b *delta.Batch[*object]) {
		if !b.Synced || r.Len() != 2 {
			t.Errorf("in process: synced %v, Len %d", b.Synced, r.Len())
		}
	})
	if r.Len() != 0 {
		t.Errorf("Len %d", r.Len())
	}
}

func TestP08_EmptyListDeletesEverything(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("", 1, "E"), state("a", 1, "A"))
	r.list("5")
	if got := r.expect("-@1#E/@1#E i t", "-a@1#A/a@1#A i t"); !got.synced {
		t.Error("not synced")
	}
	r.list("6")
	if got := r.expect(); !got.replaced {
		t.Error("a Replace without deltas is still a batch")
	}
}

func TestP08_PartitionsAreReplacedOnTheirOwn(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"n2/", "n1/"}}, state("n1/a", 1, "A"), state("n2/b", 1, "B"))
	r.listOf("n1/", "5", state("n1/c", 3, "C"))
	r.listOf("n1/", "6", state("n1/c", 3, "C"), state("n1/d", 6, "D"))
	r.listOf("n2/", "4")
	if got := r.expect("-n1/a@1#A/n1/a@1#A i t", "+n1/c@3#C i"); got.synced {
		t.Error("synced after the first partition")
	}
	if got := r.expect("+n1/d@6#D"); got.synced || r.synced {
		t.Error("synced after a second Replace of one partition")
	}
	if got := r.expect("-n2/b@1#B/n2/b@1#B i t"); !got.synced || got.marks[0] != (delta.Mark{Partition: "n2/", Version: "4"}) {
		t.Errorf("the last partition: %+v", got)
	}
	if !r.synced || r.reached["n1/"] != "6" || r.reached["n2/"] != "4" {
		t.Errorf("synced %v, versions %q %q", r.synced, r.reached["n1/"], r.reached["n2/"])
	}
}

func TestP08_NewestOfOneKeyHolds(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.list("10", state("a", 3, "A"), state("b", 9, "B"), state("b", 4, "B"), state("a", 5, "A"), state("c", 0, "1"), state("c", 0, "2"))
	if r.Len() != 3 {
		t.Errorf("Len %d, want 3", r.Len())
	}
	r.expect("+a@5#A i", "+b@9#B i", "+c@#2 i")
}

func TestP12_UnchangedObjectsAreSilent(t *testing.T) {
	for _, report := range []bool{false, true} {
		r := newRig(t, delta.Options[*object]{ReportUnchanged: report},
			state("a", 1, "A"), state("b", 0, "B"), state("c", 3, ""), state("d", 4, "D"), state("e", 5, "E"))
		r.list("10", state("a", 1, "A"), state("b", 0, "B"), state("c", 3, ""), state("d", 4, "X"), r.cache.states["e"])
		want := []string{"b@#B>b@#B i", "c@3#>c@3# i", "d@4#D>d@4#X i"}
		if report {
			want = slices.Insert(append(want, "e@5#E>e@5#E i ="), 0, "a@1#A>a@1#A i =")
		}
		r.expect(want...)
		r.expectStale(0)
	}
}

func TestP02_OlderListIsRefused(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	refused := func() {
		t.Helper()
		err := r.Replace(t.Context(), "", "9", items(state("gone", 3, "G")), delta.ReplaceOptions{})
		if !errors.Is(err, delta.ErrOlder) || !strings.Contains(err.Error(), "version 9,") || !strings.Contains(err.Error(), "version 10;") {
			t.Fatalf("error %v", err)
		}
	}
	r.list("8", state("gone", 3, "G"))
	r.push(del(state("gone", 10, "G")))
	refused() // what is pending counts
	r.pop()
	r.pop()
	refused()
	if r.Len() != 0 {
		t.Errorf("Len %d after a refused Replace", r.Len())
	}
	r.list("10")
	r.expect()
	r.must(r.Bookmark(t.Context(), "", "12"))
	if err := r.Replace(t.Context(), "", "11", nil, delta.ReplaceOptions{}); !errors.Is(err, delta.ErrOlder) {
		t.Fatalf("after a bookmark: %v", err)
	}
}

func TestP02_ListSaysNothingOfWhatIsNewer(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("created", 12, "C"), state("changed", 11, "D"), state("gone", 9, "G"), state("last", 10, "L"), state("unversioned", 0, "U"))
	r.list("10", state("changed", 5, "D"))
	r.expect("-gone@9#G/gone@9#G i t", "-last@10#L/last@10#L i t", "-unversioned@#U/unversioned@#U i t")
	r.expectStale(1)
}

func TestP02_ReplayFromBeforeTheListAddsNothing(t *testing.T) {
	t.Run("a tombstone", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{}, state("a", 4, "A"))
		r.list("10")
		r.expect("-a@4#A/a@4#A i t")
		r.push(set(state("a", 7, "A")), set(state("a", 11, "A")))
		r.expect("+a@11#A")
		r.expectStale(1)
	})
	t.Run("a tombstone of a list without a version", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{}, state("a", 4, "A"))
		r.list("")
		r.expect("-a@4#A/a@4#A i t")
		r.push(set(state("a", 4, "A")), set(state("a", 3, "A")), set(state("a", 5, "A")))
		r.expect("+a@5#A")
		r.expectStale(2)
	})
	t.Run("a key that was gone before the list", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{})
		r.list("10")
		r.expect()
		r.push(set(state("a", 9, "A")), set(state("b", 0, "B")), set(state("c", 11, "C")))
		r.expect("+b@#B", "+c@11#C")
		r.expectStale(1)
	})
	t.Run("another partition", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{Partitions: []string{"n1/", "n2/"}})
		r.must(r.Replace(t.Context(), "n1/", "10", nil, delta.ReplaceOptions{}))
		r.expect()
		for _, partition := range []string{"n1/", "n2/"} {
			r.must(r.Push(t.Context(), partition, "9", []delta.Event[*object]{set(state(partition+"a", 9, "A"))}))
		}
		r.expect("+n2/a@9#A")
	})
	t.Run("a new history", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{})
		r.list("10")
		r.must(r.Replace(t.Context(), "", "3", nil, delta.ReplaceOptions{NewHistory: true}))
		r.push(set(state("a", 2, "A")), set(state("b", 4, "B")))
		r.expect()
		r.expect()
		r.expect("+b@4#B")
	})
}

func TestP02_ListAgainstTheMemoryOfDeletes(t *testing.T) {
	for _, test := range []struct {
		name, version string
		want          []string
	}{
		{"no version: not resurrected", "", nil},
		{"older than the delete: not resurrected", "15", nil},
		{"newer than the delete: it knows better", "21", []string{"+a@5#A i"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, delta.Options[*object]{})
			r.must(r.Push(t.Context(), "", "", []delta.Event[*object]{del(state("a", 20, "A"))}))
			r.list(test.version, state("a", 5, "A"))
			r.expect(test.want...)
		})
	}
}

func TestP16_NewHistoryHoldsWhateverTheVersions(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("a", 90, "A"), state("b", 45, "B"), state("c", 90, "C"))
	r.push(set(state("d", 100, "D")), del(state("e", 101, "E")))
	r.must(r.Replace(t.Context(), "", "50", items(state("a", 40, "A"), state("b", 45, "B"), state("e", 30, "E")), delta.ReplaceOptions{NewHistory: true}))
	r.expect("+d@100#D")
	// An equal version may be another state: b is reported although its version and UID did not
	// change.
	r.expect("-c@90#C/c@90#C i t", "-d@100#D/d@100#D i t", "a@90#A>a@40#A i", "b@45#B>b@45#B i", "+e@30#E i")
	if r.reached[""] != "50" {
		t.Errorf("Version %q", r.reached[""])
	}
	// Later changes and lists are compared with the new history, the memory of deletes too.
	r.push(set(state("a", 51, "A")), set(state("a", 39, "A")), set(state("d", 52, "D")), set(state("c", 49, "C")))
	r.expect("a@40#A>a@51#A", "+d@52#D")
	r.expectStale(3) // a@39, c@49, and the delete of e
	r.list("55", state("a", 51, "A"))
	r.expect("-b@45#B/b@45#B t", "-d@52#D/d@52#D t", "-e@30#E/e@30#E t")
}

func TestP16_NewHistoryIsOfItsPartition(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"n1/", "n2/"}})
	for _, partition := range []string{"n1/", "n2/"} {
		r.must(r.Push(t.Context(), partition, "20", []delta.Event[*object]{del(state(partition+"a", 20, "A"))}))
	}
	r.must(r.Replace(t.Context(), "n1/", "5", nil, delta.ReplaceOptions{NewHistory: true}))
	for _, partition := range []string{"n1/", "n2/"} {
		r.must(r.Push(t.Context(), partition, "", []delta.Event[*object]{set(state(partition+"a", 6, "A"))}))
	}
	r.pop()
	r.pop()
	r.expect("+n1/a@6#A")
}

// disorder is a Known that breaks its contract.
type disorder struct{ keys []string }

func (d disorder) Get(string) (*object, bool) { return nil, false }
func (d disorder) Prefix(string) iter.Seq2[string, *object] {
	return func(yield func(string, *object) bool) {
		for _, k := range d.keys {
			if !yield(k, state(k, 1, "U")) {
				return
			}
		}
	}
}

func TestKnownOutOfOrderPanics(t *testing.T) {
	for _, keys := range [][]string{{"n/b", "n/a"}, {"n/a", "n/a"}, {"other"}} {
		q, err := delta.New(delta.Options[*object]{Partitions: []string{"n/"}, Known: func() delta.Known[*object] { return disorder{keys} }})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Replace(t.Context(), "n/", "1", nil, delta.ReplaceOptions{}); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if v := recover(); v == nil {
					t.Errorf("keys %q: no panic", keys)
				}
			}()
			_ = q.Pop(t.Context(), func(*delta.Batch[*object]) { t.Errorf("keys %q: a batch", keys) })
		}()
	}
}
