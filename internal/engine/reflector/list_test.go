package reflector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// inPages is for lists in pages.
var inPages = Options[object]{Transport: source.Transport{NoStreamedLists: true}}

func TestStreamedList(t *testing.T) {
	broken := streamed(sends("+a@3"), fails(errCut))
	notUsable := parse("~a@4")
	notUsable[0].Err = errors.New("an object of another type")
	scenarios(t, map[string]scenario{
		"goes on as the watch": {
			answers: []answer{streamed(sends("+a@3 +b@1"), sends("-b@1 +c@4 =5 ~a@6"), sends("*9"))},
			queue:   []string{"replace 5: a@3 c@4", "push 6: set a@6", "bookmark 9"},
			check: unless(func(h health.Watch) bool {
				return h.State != health.StateWatching || h.Version != "9" || h.Lists != 1 || h.Listed != 0
			}),
		},
		"is refused: pages from then on": {
			answers: []answer{
				failed("stream", source.ErrStreamedListRefused),
				page(first, "5", "+a@3", "next"), page(following("next"), "8", "+b@4", ""),
				watched("5", fails(errExpired)), page(later, "20", "", ""), watched("20"),
			},
			queue: []string{"replace 5: a@3 b@4", "replace 20:"},
		},
		"breaks twice: pages once": {
			answers: []answer{broken, broken, onePage, watched("5", fails(errExpired)), streamed()},
			pass:    time.Minute,
			queue:   []string{replaced5},
			check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
				if err := r.Health().LastError; !source.IsExpired(err) {
					t.Errorf("the last error is %v", err)
				}
			},
		},
		"fails, with PagesAfterFailure: pages unless the server is busy": {
			o:       Options[object]{PagesAfterFailure: true},
			answers: []answer{failed("stream", errTooMany(1)), failed("stream", errForbidden), onePage, watched("5")},
			queue:   []string{replaced5},
		},
		"has an object that leaves the selection": {
			o: Options[object]{Accept: func(i source.Item[object], _ bool) error {
				if i.Version == "4" {
					return errors.New("its labels do not match")
				}
				return nil
			}},
			answers: []answer{streamed(sends("+a@3 +b@1"), sends("~a@4 =5"))},
			queue:   []string{"replace 5: b@1"}, // P20
		},
		"has something that is not an object of its type": { // P20
			answers: []answer{streamed(sends("+a@3 +b@1"), read{events: notUsable}, sends("=5"))},
			queue:   []string{"replace 5: a@3 b@1"},
			check:   unless(func(h health.Watch) bool { return h.Dropped != 1 }),
		},
		"has the version 0: an ended watch lists again": {
			answers: []answer{streamed(sends("+a@3 =0"), eof), streamed(sends("=0"))},
			queue:   []string{"replace 0: a@3", "replace 0:"},
		},
		"has no versions: an ended watch lists again": {
			answers: []answer{streamed(sends("+a@ ="), eof), streamed(sends("="))},
			queue:   []string{"replace : a@", "replace :"},
		},
		"in pages, without versions: the watch begins now": {
			o:       inPages,
			answers: []answer{page(first, "", "+a@", ""), watched("", sends("~a@"), fails(errCut)), page(later, "", "+a@", ""), watched("")},
			queue:   []string{"replace : a@", "push : set a@", "replace : a@"},
		},
		"is refused by the queue: a consistent list": {
			o: inPages, j: &journal{refuse: delta.ErrOlder},
			answers: []answer{page(first, "5", "", ""), page(later, "7", "", ""), watched("7")},
			queue:   []string{"replace 5:", "replace 7:"},
		},
	})
}

// TestListStagesCachedObjects has the cache know objects that a list brings.
func TestListStagesCachedObjects(t *testing.T) {
	transform := func(o object) (object, error) { o.note = " transformed"; return o, nil }
	expired := listed(fails(errExpired))
	broken := streamed(sends("+a@3 +b@3"), fails(errCut))
	noUID := page(first, "3", "+a@3", "")
	noUID.page.Items[0].UID = ""
	otherUID := page(later, "9", "+a@3 +b@4 +d@3", "next")
	otherUID.page.Items[2].UID = "other"
	cutPage := page(`list "" 500 "two"`, "5", "+b@3", "three")
	cutPage.err = errCut
	cached := func(want ...string) func(*testing.T, *Reflector[object], *script, *journal) {
		return func(t *testing.T, _ *Reflector[object], s *script, _ *journal) { same(t, "cached", s.cached, want...) }
	}
	scenarios(t, map[string]scenario{
		"decoded, the same": {
			o:       Options[object]{Known: knows("a@3", "b@3"), Transform: transform},
			answers: []answer{streamed(sends("+a@3 +b@4 =5"))},
			queue:   []string{"replace 5: a@3 as known b@4 transformed"},
		},
		"decoded, without a UID": { // fakes have one version for everything
			o: Options[object]{Known: func(string) (object, string, string, bool) {
				return object{note: " as known"}, "3", "", true
			}, Transport: source.Transport{NoStreamedLists: true}},
			answers: []answer{noUID, watched("3")},
			queue:   []string{"replace 3: a@3"},
		},
		"asked, in a streamed list": { // but not in the first, nor for a version that is not compared
			asks: true, o: Options[object]{Known: knows("a@3", "b@2", "d@6", "e@x")},
			answers: []answer{expired, streamed(sends("+a@3 +b@4"), sends("+c@5 +d@6 +e@x"), sends("=9"))},
			queue:   []string{"replace 5: a@3 as known", "replace 9: a@3 as known b@4 c@5 d@6 as known e@x as known"},
			check:   cached("a@3", "d@6"),
		},
		"asked, in pages": {
			asks: true,
			o: Options[object]{
				Known:     knows("a@3", "b@3", "c@5", "d@3"),
				Transport: source.Transport{NoStreamedLists: true},
			},
			answers: []answer{page(first, "5", "+a@3 +b@3", ""), failed("watch 5", errExpired),
				otherUID, page(`list "" 500 "next"`, "9", "+c@5", ""), watched("9")},
			queue: []string{
				"replace 5: a@3 as known b@3 as known",
				"replace 9: a@3 as known b@4 c@5 as known d@3",
			},
			check: cached("a@3", "c@5"),
		},
		"asked, in a list that fails": {
			asks: true, o: Options[object]{Known: knows("a@3", "b@3")},
			answers: []answer{expired, broken, streamed(sends("+a@3 =10"))},
			queue:   []string{"replace 5: a@3 as known", "replace 10: a@3 as known"},
			check:   cached("a@3", "b@3", "a@3"),
		},
		"asked, in a page that fails": {
			asks: true, o: Options[object]{Known: knows("a@3", "b@3"), Transport: source.Transport{NoStreamedLists: true}},
			answers: []answer{onePage, failed("watch 5", errExpired),
				page(later, "5", "+a@3", "two"), cutPage, page(`list "" 500 "two"`, "5", "+b@3", ""), watched("5")},
			queue: []string{"replace 5: a@3 as known", "replace 5: a@3 as known b@3 as known"},
		},
		"deleted within the list": {
			asks: true, o: Options[object]{Known: knows("a@3", "b@3", "c@3")},
			answers: []answer{expired, streamed(sends("+a@3 +b@3"), sends("-a@8"), sends("+c@3 =9"))},
			queue:   []string{"replace 5: a@3 as known", "replace 9: b@3 as known c@3 as known"},
		},
		"of another partition": {
			asks: true, o: Options[object]{Partition: "ns1/", Known: knows("ns1/a@3", "ns2/b@3")},
			answers: []answer{streamed(sends("+ns1/a@3 =5"), fails(errExpired)), streamed(sends("+ns1/a@3 +ns2/b@3 =9"))},
			check:   cached("ns1/a@3"),
		},
	})
}

// TestRelistMergesByKey has a list with cached objects c and decoded objects d, the longer half
// of either kind. The server's order stays where it is another than that of the keys.
func TestRelistMergesByKey(t *testing.T) {
	for _, list := range []string{"", "d", "c", "dc", "cd", "dcdcdc", "cccdcc", "dddcdd", "ccccddd", "dddcccc"} {
		var known []string
		want, brings := "replace 9:", ""
		for i, kind := range list {
			name := string(rune('a' + i))
			want += " " + name + "@3"
			brings += "+" + name + "@3 "
			if kind == 'c' {
				known = append(known, name+"@3")
				want += " as known"
			}
		}
		scenario{
			asks: true, o: Options[object]{Known: knows(known...)},
			answers: []answer{streamed(sends("=5"), fails(errExpired)), streamed(sends(brings + "=9"))},
			queue:   []string{"replace 5:", want},
		}.run(t)
	}
	scenario{
		asks: true, o: Options[object]{Known: knows("b@3")},
		answers: []answer{streamed(sends("=5"), fails(errExpired)), streamed(sends("+c@3 +a@3 +b@3 =9"))},
		queue:   []string{"replace 5:", "replace 9: c@3 a@3 b@3 as known"},
	}.run(t)
}

// TestStreamedListThatRepeatsIsBounded streams two objects again and again, decoded or cached,
// the states of one of them in turn.
func TestStreamedListThatRepeatsIsBounded(t *testing.T) {
	var again []read
	for range 100 {
		again = append(again, sends(strings.Repeat("+b@4 +a@3 +b@2 ", 300)))
	}
	complete := append(slices.Clone(again), sends("+c@5 =9"), fails(errExpired))
	for name, known := range map[string][]string{"decoded": nil, "cached": {"a@3", "b@4"}} {
		t.Run(name, scenario{
			asks: true, o: Options[object]{Known: knows(known...)},
			answers: []answer{listed(fails(errExpired)), streamed(complete...), streamed(again...)},
			pass:    time.Minute,
			check: func(t *testing.T, r *Reflector[object], _ *script, j *journal) {
				if h := r.Health(); h.Lists != 3 || h.Listed == 0 || h.Listed > leastRoom {
					t.Errorf("health is %+v, want at most %d objects staged", h, leastRoom)
				}
				for _, want := range []string{" a@3", " b@4", " c@5"} {
					if staged := j.read()[1]; strings.Count(staged, want) != 1 {
						t.Errorf("the queue was given %.100q, want %s once", staged, want)
					}
				}
			},
		}.run)
	}
}

// TestStreamedListThatChanges streams changes of many objects at random before the end of the
// list, and compares the result with a map. There are too many for a search at each removal.
func TestStreamedListThatChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]string{}
	var events []source.Event[object]
	for i := range 12 * leastRoom {
		key, version := fmt.Sprint(random.IntN(4*leastRoom)), fmt.Sprint(i+1)
		kind := []string{"+", "+", "~", "-"}[random.IntN(4)]
		if kind == "-" {
			delete(want, key)
		} else {
			want[key] = version
		}
		events = append(events, parse(kind+key+"@"+version)...)
	}
	got := map[string]string{}
	queue := &replaced{journal: &journal{}, items: func(items []delta.Item[object]) {
		for _, item := range items {
			got[item.Key] = item.Version
		}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	queue.done = cancel
	s := &script{t: t, answers: []answer{streamed(read{events: append(events, parse("=999999")...)})}}
	if err := New(s, queue, Options[object]{}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d objects are left, want %d", len(got), len(want))
	}
}

// replaced is a queue that looks at the items of a Replace.
type replaced struct {
	*journal
	items func([]delta.Item[object])
	done  func()
}

func (q *replaced) Replace(_ context.Context, _, _ string, items []delta.Item[object], _ delta.ReplaceOptions) error {
	q.items(items)
	q.done()
	return nil
}

// TestKeptKeysAreCopies of keys that are valid for the moment, many in one allocation.
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
