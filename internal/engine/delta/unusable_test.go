package delta_test

import (
	"testing"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// TestP20_UnusableStates checks what becomes of a state that cannot be decoded, with and without a
// known state of its key.
func TestP20_UnusableStates(t *testing.T) {
	bad := func(version int, uid string) delta.Event[*object] { return unusable(state("a", version, uid)) }
	left := unusable(state("a", 7, "A")) // a transform failed, say
	left.Err = nil
	for _, test := range []struct {
		name    string
		known   []*object
		events  []delta.Event[*object]
		want    []string
		present string // the version of the state that cannot be used, "" for none
		stale   uint64
	}{
		{"the known state stays", []*object{state("a", 5, "A")}, []delta.Event[*object]{bad(7, "A")}, nil, "7", 0},
		{"an unknown one is left out", nil, []delta.Event[*object]{bad(7, "A")}, nil, "7", 0},
		{"the known state ends with its incarnation", []*object{state("a", 5, "A")}, []delta.Event[*object]{bad(7, "B")}, []string{"-a@5#A/a@5#A t"}, "7", 0},
		{"its delete has the known state", []*object{state("a", 5, "A")}, []delta.Event[*object]{bad(7, "A"), gone(state("a", 8, "A"))}, []string{"-a@5#A/a@5#A t"}, "", 0},
		{"a delete that can be used", []*object{state("a", 5, "A")}, []delta.Event[*object]{bad(7, "A"), del(state("a", 8, "A"))}, []string{"-a@5#A/a@8#A"}, "", 0},
		{"a delete of one that is left out", nil, []delta.Event[*object]{bad(7, "A"), gone(state("a", 8, "A"))}, nil, "", 0},
		{"it can be used again", []*object{state("a", 5, "A")}, []delta.Event[*object]{bad(7, "A"), set(state("a", 9, "A"))}, []string{"a@5#A>a@9#A"}, "", 0},
		{"it can be used after all", nil, []delta.Event[*object]{bad(7, "A"), set(state("a", 9, "A"))}, []string{"+a@9#A"}, "", 0},
		{"one that is not remembered", nil, []delta.Event[*object]{bad(6, "A"), left}, nil, "", 0},
		{"a replay of a state before", []*object{state("a", 5, "A")}, []delta.Event[*object]{bad(7, "A"), set(state("a", 6, "A"))}, nil, "7", 1},
		{"a replay of a delete before", nil, []delta.Event[*object]{bad(7, "B"), gone(state("a", 6, "A"))}, nil, "7", 1},
		{"older than the known state", []*object{state("a", 9, "A")}, []delta.Event[*object]{bad(7, "A")}, nil, "", 1},
		{"after the end of its incarnation", []*object{state("a", 5, "A")}, []delta.Event[*object]{bad(7, "B"), set(state("a", 9, "B"))}, []string{"-a@5#A/a@5#A t", "+a@9#B"}, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, delta.Options[*object]{}, test.known...)
			r.push(test.events...)
			r.expect(test.want...)
			u, _ := r.UnusableState("a")
			if u.Version != test.present {
				t.Errorf("the state at %q cannot be used, want %q", u.Version, test.present)
			}
			r.expectStale(test.stale)
		})
	}
}

// TestP20_UnusableObjectsBeginOnce has a batch name an object when it becomes unusable, and not for
// later states of it.
func TestP20_UnusableObjectsBeginOnce(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	begun := func() (keys []string) {
		r.process(func(b *delta.Batch[*object]) {
			for _, u := range b.Unusable {
				keys = append(keys, u.Key+"#"+u.UID)
			}
		})
		return keys
	}
	expect := func(what string, want ...string) {
		t.Helper()
		got := begun()
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("%s: %q begin to be unusable, want %q", what, got, want)
		}
	}
	list := func(version string, stays ...*object) {
		o := delta.ReplaceOptions{}
		for _, s := range stays {
			o.Stays = append(o.Stays, staying(s))
		}
		r.must(r.Replace(t.Context(), "", version, nil, o))
	}
	list("5", state("a", 4, "A"))
	expect("a list", "a#A")
	r.push(unusable(state("a", 7, "A")))
	expect("a later state")
	list("9", state("a", 7, "A"))
	expect("a relist")
	r.push(unusable(state("a", 11, "B")))
	expect("another incarnation", "a#B")
	r.push(set(state("a", 12, "B")), unusable(state("a", 13, "B")))
	expect("again", "a#B")
	r.push(unusable(state("n", 14, "")))
	expect("one without a UID", "n#")
	r.push(unusable(state("n", 15, "")))
	expect("a later state of it")
}

// TestP20_UnusableObjectsEnd with the slots or the partition that they are in, and with a list that
// does not have them.
func TestP20_UnusableObjectsEnd(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"leave":      func(r *rig) { r.must(r.Leave(func(key, uid string) bool { return uid == "A" })) },
		"a list":     func(r *rig) { r.listOf("n1/", "9") },
		"a removal":  func(r *rig) { r.must(r.RemovePartition("n1/")) },
		"a new list": func(r *rig) { r.must(r.ReplacePartitions("n3/")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, delta.Options[*object]{Partitions: []string{"n1/", "n2/"}})
			r.listOf("n1/", "2")
			r.process(func(*delta.Batch[*object]) {})
			r.pushTo("n1/", unusable(state("n1/a", 7, "A")))
			r.process(func(*delta.Batch[*object]) {})
			if n, first := r.Unusable("n1/"); n != 1 || first.Key != "n1/a" {
				t.Fatalf("%d objects cannot be used, the first is %v", n, first)
			}
			if n, _ := r.Unusable("n2/"); n != 0 {
				t.Errorf("%d objects of the other partition cannot be used", n)
			}
			end(r)
			r.must(r.Resync("after it")) // in its batch, or one of its own
			for ended := false; !ended; {
				r.process(func(b *delta.Batch[*object]) { ended = len(b.Resync) > 0 })
			}
			if n, first := r.Unusable(""); n != 0 {
				t.Errorf("%d objects cannot be used, the first is %v", n, first)
			}
		})
	}
}

// TestP16_ANewHistoryKeepsNoUnusableObject of the old one, nor its known state.
func TestP16_ANewHistoryKeepsNoUnusableObject(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("a", 50, "A"), state("b", 50, "B"))
	r.push(unusable(state("a", 60, "A")), unusable(state("b", 60, "B")))
	r.expect()
	o := delta.ReplaceOptions{NewHistory: true, Stays: []delta.Unusable{staying(state("b", 8, "B"))}}
	r.must(r.Replace(t.Context(), "", "9", nil, o))
	r.expect("-a@50#A/a@50#A i t", "-b@50#B/b@50#B i t")
	if n, first := r.Unusable(""); n != 1 || first.Version != "8" {
		t.Errorf("%d objects cannot be used, the first is %v; want b of the new history", n, first)
	}
}
