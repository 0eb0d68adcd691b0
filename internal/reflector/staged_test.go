package reflector

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// cached knows objects by their key and version.
func cached(versions map[string]string) func(string) (object, string, string, bool) {
	return func(key string) (object, string, string, bool) {
		version, ok := versions[key]
		return object{name: strings.Clone(key), version: version, note: " as known"}, version, "uid-" + strings.Clone(key), ok
	}
}

// relist is an answer that streams objects, named as in "a@3", with some per read.
func relist(version string, reads ...string) answer {
	a := answer{expect: "stream"}
	for _, names := range reads {
		var r read
		for text := range strings.FieldsSeq(names) {
			name, version, _ := strings.Cut(text, "@")
			r.events = append(r.events, event(source.Added, name, version))
		}
		a.reads = append(a.reads, r)
	}
	a.reads = append(a.reads, read{events: []source.Event[object]{bookmark(source.InitialEventsEnd, version)}})
	return a
}

// asking runs a reflector over a source that leaves out what is held, until all
// requests were made.
func asking(t *testing.T, answers []answer, o Options[object], check func(s *script, j *journal)) {
	t.Helper()
	runScript(t, &script{t: t, asks: true, answers: answers}, o, func(_ *Reflector[object], s *script, j *journal) {
		time.Sleep(time.Minute)
		synctest.Wait()
		check(s, j)
	})
}

func TestRelistStagesWhatIsHeldInItsPlace(t *testing.T) {
	known := cached(map[string]string{"a": "3", "b": "2", "d": "6", "e": "x"})
	second := relist("9", "a@3 b@4", "c@5 d@6 e@x")
	asking(t, []answer{listed(read{err: errExpired}), second}, Options[object]{Known: known}, func(s *script, j *journal) {
		same(t, "held", s.heldOf, "a@3", "d@6") // in the first list nothing, and no version that cannot be compared
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known",
			"replace 9 (new history false): a@3 as known b@4 c@5 d@6 as known e@x as known")
	})
}

func TestPagedRelistStagesWhatIsHeldInItsPlace(t *testing.T) {
	page := func(version, token string, items ...source.Item[object]) source.Page[object] {
		return source.Page[object]{Version: version, Continue: token, Items: items}
	}
	asking(t, []answer{
		{expect: `list "0" 500 ""`, page: page("5", "", item("a", "3"), item("b", "3"))},
		{expect: "watch 5", err: errExpired},
		{expect: `list "" 500 ""`, page: page("9", "next", item("a", "3"), item("b", "4"))},
		{expect: `list "" 500 "next"`, page: page("9", "", item("c", "5"))},
		{expect: "watch 9"},
	}, Options[object]{Known: cached(map[string]string{"a": "3", "b": "3", "c": "5"}), NoStreamedLists: true}, func(s *script, j *journal) {
		same(t, "held", s.heldOf, "a@3", "c@5")
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known b@3 as known",
			"replace 9 (new history false): a@3 as known b@4 c@5 as known")
	})
}

// TestStreamedListThatRepeatsIsBounded streams two objects again and again, decoded or held,
// the states of one of them in turn.
func TestStreamedListThatRepeatsIsBounded(t *testing.T) {
	var again []string
	for range 100 {
		again = append(again, strings.Repeat("b@4 a@3 b@2 ", 300))
	}
	for name, known := range map[string]map[string]string{"decoded": nil, "held": {"a": "3", "b": "4"}} {
		t.Run(name, func(t *testing.T) {
			endless := relist("9", again...)
			endless.reads = endless.reads[:len(again)]
			last := relist("9", append(again, "c@5")...)
			last.reads = append(last.reads, read{err: errExpired})
			answers := []answer{listed(read{err: errExpired}), last, endless}
			runScript(t, &script{t: t, asks: true, answers: answers}, Options[object]{Known: cached(known)}, func(r *Reflector[object], _ *script, j *journal) {
				time.Sleep(time.Minute)
				synctest.Wait()
				if h := r.Health(); h.Lists != 3 || h.Listed == 0 || h.Listed > leastRoom {
					t.Errorf("health is %+v, want at most %d objects staged", h, leastRoom)
				}
				staged := j.read()[1]
				for _, want := range []string{"a@3", "c@5"} {
					if !strings.Contains(staged, want) {
						t.Errorf("the queue was given %.100q, without %s", staged, want)
					}
				}
			})
		})
	}
}

// TestHeldObjectsOfAListThatFailedAreForgotten has a list break off and read again.
func TestHeldObjectsOfAListThatFailedAreForgotten(t *testing.T) {
	broken := relist("9", "a@3 b@3")
	broken.reads[1] = read{err: errCut}
	asking(t, []answer{listed(read{err: errExpired}), broken, relist("10", "a@3")}, Options[object]{Known: cached(map[string]string{"a": "3", "b": "3"})}, func(s *script, j *journal) {
		same(t, "held", s.heldOf, "a@3", "b@3", "a@3")
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known", "replace 10 (new history false): a@3 as known")
	})
}

// TestHeldObjectThatIsDeletedWithinTheListIsNotStaged: such an event is legal.
func TestHeldObjectThatIsDeletedWithinTheListIsNotStaged(t *testing.T) {
	second := relist("9", "a@3 b@3")
	second.reads[1].events = append([]source.Event[object]{event(source.Deleted, "a", "8")}, second.reads[1].events...)
	asking(t, []answer{listed(read{err: errExpired}), second}, Options[object]{Known: cached(map[string]string{"a": "3", "b": "3"})}, func(_ *script, j *journal) {
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known", "replace 9 (new history false): b@3 as known")
	})
}

// TestObjectOfAnotherScopeIsNotHeld though the cache has it: it is not of this list.
func TestObjectOfAnotherScopeIsNotHeld(t *testing.T) {
	asking(t, []answer{relist("5", "ns1/a@3"), {expect: "watch 5", err: errExpired}, relist("9", "ns1/a@3 ns2/b@3")},
		Options[object]{Scope: "ns1/", Known: cached(map[string]string{"ns1/a": "3", "ns2/b": "3"})}, func(s *script, _ *journal) {
			same(t, "held", s.heldOf)
		})
}

// TestP16_RewoundServerIsListedWithNothingHeld: versions of another history mean nothing.
func TestP16_RewoundServerIsListedWithNothingHeld(t *testing.T) {
	known := cached(map[string]string{"a": "3"})
	rewound := relist("4", "a@3 b@2")
	asking(t, []answer{listed(read{err: errExpired}), rewound, rewound}, Options[object]{Known: known}, func(s *script, j *journal) {
		same(t, "held", s.heldOf, "a@3") // of the list that found out, and not of the next
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known", "replace 4 (new history true): a@3 b@2")
	})
}

// TestTakeMergesByKey with either half the longer one.
func TestTakeMergesByKey(t *testing.T) {
	for _, test := range []struct{ decoded, held, want string }{
		{"", "", ""}, {"a", "", "a"}, {"", "a", "a"}, {"a", "b", "ab"}, {"b", "a", "ab"},
		{"ace", "bdf", "abcdef"}, {"d", "abcefg", "abcdefg"}, {"abcefg", "d", "abcdefg"}, {"xyz", "abcd", "abcdxyz"}, {"abc", "wxyz", "abcwxyz"},
		{"ca", "b", "cab"}, // the server's order is kept where it is another
	} {
		var s staged[string]
		for key := range strings.SplitSeq(test.decoded, "") {
			s.decoded = append(s.decoded, delta.Item[string]{Key: key})
		}
		for key := range strings.SplitSeq(test.held, "") {
			s.cached = append(s.cached, delta.Item[string]{Key: key})
		}
		var got strings.Builder
		n := s.len()
		for _, item := range s.take() {
			got.WriteString(item.Key)
		}
		if got.String() != test.want || n != len(test.want) || s.len() != 0 {
			t.Errorf("%q and %q: got %q of %d, want %q", test.decoded, test.held, &got, n, test.want)
		}
	}
}

// TestKeptKeysAreCopies of what is valid for the moment, many in one allocation.
func TestKeptKeysAreCopies(t *testing.T) {
	var s staged[string]
	var kept []string
	scratch := make([]byte, 0, 20)
	for i := range 10_000 {
		scratch = fmt.Appendf(scratch[:0], "ns/object-%d", i)
		kept = append(kept, s.keep(unsafe.String(&scratch[0], len(scratch))))
	}
	for i, key := range kept {
		if want := fmt.Sprintf("ns/object-%d", i); key != want {
			t.Fatalf("key %d is %q", i, key)
		}
	}
	if long := strings.Repeat("x", 2*keysAtOnce); s.keep(long) != long {
		t.Error("a long key was not kept")
	}
	s = staged[string]{}
	if n := testing.AllocsPerRun(10, func() {
		for range 1000 {
			s.keep("namespace/name")
		}
	}); n > 2 {
		t.Errorf("%v allocations for 1,000 keys", n)
	}
}

// TestP20_ObjectLeavesTheSelectionWhileItIsStreamed changes an object before the list is
// complete, so that it does not belong to the collection any more.
func TestP20_ObjectLeavesTheSelectionWhileItIsStreamed(t *testing.T) {
	accept := func(i source.Item[object], _ bool) error {
		if i.Version == "4" {
			return errors.New("its labels do not match")
		}
		return nil
	}
	run(t, []answer{{expect: "stream", reads: []read{
		{events: []source.Event[object]{event(source.Added, "a", "3"), event(source.Added, "b", "1")}},
		{events: []source.Event[object]{event(source.Modified, "a", "4"), bookmark(source.InitialEventsEnd, "5")}},
	}}}, Options[object]{Accept: accept}, func(_ *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), "replace 5 (new history false): b@1")
	})
}

// TestStagedRemoves compares objects that are staged and taken out at random with a map. There
// are enough for each kind of sweep, and too many for a search at each removal.
func TestStagedRemoves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := &staged[string]{isOlder: func(a, b string) bool { order, _ := delta.CompareDecimal(a, b); return order < 0 }}
	want := map[string]string{}
	for i := range 20 * leastRoom {
		key := fmt.Sprint(random.IntN(4 * leastRoom))
		item := delta.Item[string]{Key: key, Version: fmt.Sprint(i + 1)}
		switch random.IntN(4) {
		case 0:
			s.remove(key)
			delete(want, key)
			continue
		case 1:
			s.stay(key)
			s.remove(key)
			delete(want, key)
			continue
		case 2:
			s.addCached(item)
		default:
			s.add(item)
		}
		want[key] = item.Version
		s.bound()
	}
	if len(s.stays) > 0 {
		t.Errorf("%d keys stay", len(s.stays))
	}
	got := map[string]string{}
	for _, item := range s.take() {
		if order, _ := delta.CompareDecimal(got[item.Key], item.Version); got[item.Key] == "" || order < 0 {
			got[item.Key] = item.Version
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d objects are left, want %d", len(got), len(want))
	}
}
