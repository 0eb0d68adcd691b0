package delta_test

import (
	"fmt"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

func TestKnownStateDecidesAddOrUpdate(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("b", 1, "B"))
	r.push(set(state("a", 2, "A")), set(state("b", 3, "B")), set(state("a", 4, "A")), del(state("a", 5, "A")), del(state("a", 6, "A")))
	got := r.expect("+a@2#A", "b@1#B>b@3#B", "a@2#A>a@4#A", "-a@4#A/a@5#A")
	if len(got.marks) != 1 || got.marks[0] != (delta.Mark{Version: "6"}) {
		t.Errorf("marks %v", got.marks)
	}
	r.expectStale(1) // the second delete
}

// TestUnknownDeletes: while the producer is a fake, the delete of an unknown key is a change.
func TestUnknownDeletes(t *testing.T) {
	fake := true
	r := newRig(t, delta.Options[*object]{UnknownDeletes: func() bool { return fake }})
	r.cache.unknownDeletes = true
	r.push(del(state("a", 2, "A")), gone(state("b", 3, "B")))
	r.expect("-a@2#A/a@2#A")
	fake, r.cache.unknownDeletes = false, false
	r.push(del(state("a", 4, "A")), set(state("c", 5, "C")))
	r.expect("+c@5#C")
}

// The same rules hold for the known state and for the state that an earlier change of the batch,
// short or long, has left.
func TestP02_StaleAndRepeatedChanges(t *testing.T) {
	last := state("a", 50, "A")
	for _, test := range []struct {
		name   string
		change delta.Event[*object]
		want   string // "" = dropped
	}{
		{"newer set", set(state("a", 51, "A")), "a@50#A>a@51#A"},
		{"older set", set(state("a", 49, "A")), ""},
		{"older set, a digit less", set(state("a", 9, "A")), ""},
		{"same state again", set(state("a", 50, "A")), ""},
		{"older set of another incarnation", set(state("a", 49, "Z")), ""},
		{"newer set of another incarnation", set(state("a", 51, "Z")), "a@50#A>a@51#Z"},
		{"equal version, other UID", set(state("a", 50, "Z")), "a@50#A>a@50#Z"},
		{"equal version, UID unknown", set(state("a", 50, "")), "a@50#A>a@50#"},
		{"no version", set(state("a", 0, "A")), "a@50#A>a@#A"},
		{"malformed version", set(&object{"a", "x1", "A"}), "a@50#A>a@x1#A"},
		{"leading zero", set(&object{"a", "049", "A"}), "a@50#A>a@049#A"},
		{"newer delete", del(state("a", 51, "A")), "-a@50#A/a@51#A"},
		{"older delete", del(state("a", 49, "A")), ""},
		{"delete with the last state", del(state("a", 50, "A")), "-a@50#A/a@50#A"},
		{"delete without a version", del(state("a", 0, "A")), "-a@50#A/a@#A"},
		{"newer gone", gone(state("a", 51, "A")), "-a@50#A/a@50#A t"},
		{"older gone", gone(state("a", 49, "A")), ""},
		{"gone with the last version", gone(state("a", 50, "A")), "-a@50#A/a@50#A t"},
		{"newer gone of another incarnation", gone(state("a", 51, "Z")), "-a@50#A/a@50#A t"},
		{"gone without a version", gone(state("a", 0, "A")), "-a@50#A/a@50#A t"},
	} {
		want := []string{}
		stale := uint64(1)
		if test.want != "" {
			want, stale = append(want, test.want), 0
		}
		t.Run(test.name+"/known", func(t *testing.T) {
			r := newRig(t, delta.Options[*object]{}, last)
			r.push(test.change, set(state("z", 99, "Z")))
			r.expect(append(want, "+z@99#Z")...)
			r.expectStale(stale)
		})
		for _, others := range []int{1, 40} {
			t.Run(fmt.Sprintf("%s/among %d", test.name, others), func(t *testing.T) {
				r := newRig(t, delta.Options[*object]{})
				changes := []delta.Event[*object]{set(state("a", 40, "A")), set(last)}
				expected := []string{"+a@40#A", "a@40#A>a@50#A"}
				for i := range others {
					o := state(fmt.Sprint("k", i), 100+i, "K")
					changes, expected = append(changes, set(o)), append(expected, "+"+o.String())
				}
				r.push(append(changes, test.change)...)
				r.expect(append(expected, want...)...)
				r.expectStale(stale)
			})
		}
	}
}

func TestP02_WithoutCompareWhatArrivesIsApplied(t *testing.T) {
	incomparable := func(order int) func(a, b string) (int, bool) { // the order means nothing
		return func(string, string) (int, bool) { return order, false }
	}
	for _, compare := range []func(a, b string) (int, bool){
		nil, incomparable(0), incomparable(-1), incomparable(1),
	} {
		r := newRig(t, delta.Options[*object]{}, state("a", 9, "A"))
		q, err := delta.New(delta.Options[*object]{
			Known: r.cache.known, Describe: describe, Compare: compare,
		})
		r.must(err)
		r.Queue = q
		r.push(set(state("a", 5, "A")), set(state("a", 5, "A")), del(state("a", 1, "A")), set(state("a", 1, "A")))
		r.expect("a@9#A>a@5#A", "a@5#A>a@5#A", "-a@5#A/a@1#A", "+a@1#A")
		r.expectStale(0)
	}
}

func TestP02_ReplayDoesNotResurrect(t *testing.T) {
	for _, test := range []struct {
		name   string
		change delta.Event[*object]
		want   []string
	}{
		{"older", set(state("a", 2, "A")), nil},
		{"older incarnation", set(state("a", 2, "Z")), nil},
		{"the last state", set(state("a", 4, "A")), nil},
		{"the final state", set(state("a", 5, "A")), nil},
		{"equal version, other UID", set(state("a", 5, "Z")), []string{"+a@5#Z"}},
		{"back in the selection", set(state("a", 6, "A")), []string{"+a@6#A"}},
		{"new incarnation", set(state("a", 6, "Z")), []string{"+a@6#Z"}},
		{"no version", set(state("a", 0, "A")), []string{"+a@#A"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, delta.Options[*object]{}, state("a", 4, "A"))
			r.push(del(state("a", 5, "A")))
			r.expect("-a@4#A/a@5#A")
			r.push(test.change, set(state("z", 9, "Z")))
			r.expect(append(test.want, "+z@9#Z")...)
		})
		t.Run(test.name+"/in the batch", func(t *testing.T) {
			r := newRig(t, delta.Options[*object]{}, state("a", 4, "A"))
			r.push(del(state("a", 5, "A")), test.change)
			r.expect(append([]string{"-a@4#A/a@5#A"}, test.want...)...)
		})
	}
}

func TestP02_DeleteWithTheLastStateIsRemembered(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("a", 4, "A"), state("b", 4, "B"))
	r.push(del(state("a", 0, "")), del(state("b", 4, "B")))
	r.expect("-a@4#A/a@#", "-b@4#B/b@4#B")
	r.push(set(state("a", 3, "A")), set(state("a", 4, "A")), set(state("b", 4, "B")), set(state("b", 5, "B")))
	r.expect("+b@5#B")
	r.expectStale(3)
}

func TestP02_DeleteOfUnknownIsRemembered(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.push(del(state("a", 5, "A")), del(state("a", 3, "A")), set(state("a", 4, "A")), set(state("a", 6, "B")))
	r.expect("+a@6#B")
	r.expectStale(3)
}

func TestP02_MemoryOfDeletesIsBounded(t *testing.T) {
	replay := func(r *rig) {
		for i := range 3 {
			r.push(set(state(fmt.Sprint("k", i), 1, "K")))
		}
		r.push(set(state("z", 99, "Z")))
	}
	deleteAll := func(r *rig) {
		for i := range 3 {
			r.push(del(state(fmt.Sprint("k", i), 10+i, "K")))
		}
	}
	t.Run("the oldest is forgotten", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{RememberDeletes: 2})
		deleteAll(r)
		replay(r)
		r.expect("+k0@1#K", "+z@99#Z")
	})
	t.Run("a key takes one place", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{RememberDeletes: 3})
		deleteAll(r)
		r.push(del(state("k2", 20, "K")), del(state("k0", 21, "K")), del(state("k1", 22, "K")), del(state("k2", 23, "K")))
		replay(r)
		r.expect("+z@99#Z")
	})
	t.Run("a key that is back is not in it", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{RememberDeletes: 2})
		r.push(del(state("k0", 10, "K")), set(state("k0", 11, "L")), del(state("k1", 12, "K")), set(state("k0", 5, "K")))
		r.expect("+k0@11#L")
		r.push(del(state("k0", 0, "")), set(state("k0", 10, "K")), set(state("k1", 11, "K")))
		r.expect("-k0@11#L/k0@#")
	})
	t.Run("a key that is deleted again has its new place", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{RememberDeletes: 2})
		r.push(del(state("k0", 10, "K")), set(state("k0", 11, "L")), del(state("k0", 12, "L")), del(state("k1", 13, "K")))
		r.expect("+k0@11#L", "-k0@11#L/k0@12#L")
		r.push(set(state("k0", 11, "L")), set(state("k1", 12, "K")), set(state("z", 99, "Z")))
		r.expect("+z@99#Z")
	})
	t.Run("none", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{RememberDeletes: -1})
		deleteAll(r)
		replay(r)
		r.expect("+k0@1#K", "+k1@1#K", "+k2@1#K", "+z@99#Z")
	})
	t.Run("a thousand by default", func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{})
		for i := range 1030 {
			r.push(del(state(fmt.Sprint("k", i), 1000+i, "K")))
		}
		for i := range 1030 {
			r.push(set(state(fmt.Sprint("k", i), 1, "K")))
		}
		if got := len(r.pop().deltas); got != 6 {
			t.Errorf("%d keys came back, want 6", got)
		}
	})
}

func TestP19_ChangedUIDIsOneUpdate(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("a", 1, "A"))
	r.push(set(state("a", 5, "B")))
	r.expect("a@1#A>a@5#B")
	r.push(set(state("a", 4, "A")), del(state("a", 3, "A")), set(state("a", 6, "B")))
	r.expect("a@5#B>a@6#B")
}

func TestP19_DeleteAndAddStayTwo(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("a", 1, "A"))
	r.push(del(state("a", 5, "A")), set(state("a", 6, "B")))
	r.expect("-a@1#A/a@5#A", "+a@6#B")
}

func TestP19_DeleteCarriesTheFinalState(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("a", 1, "A"))
	r.push(del(state("a", 7, "A")))
	r.expect("-a@1#A/a@7#A")
}

// TestP19_DeleteOfAnIncarnationWhoseAddWasMissed ends the incarnation that handlers know.
func TestP19_DeleteOfAnIncarnationWhoseAddWasMissed(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("a", 1, "A"))
	r.push(del(state("a", 7, "B")), set(state("a", 5, "B")), set(state("a", 8, "C")))
	r.expect("-a@1#A/a@1#A t", "+a@8#C")
}

func TestWithoutDescribeKnownVersionsAreUnknown(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Describe: func(*object) (string, string) { return "", "" }}, state("a", 9, "A"), state("b", 9, "B"))
	r.push(set(state("a", 5, "A")))
	r.expect("a@9#A>a@5#A")
	r.list("20", state("a", 5, "A"), state("b", 3, "B"))
	r.expect("a@5#A>a@5#A i", "b@9#B>b@3#B i")
}
