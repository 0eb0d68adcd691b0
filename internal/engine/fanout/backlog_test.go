package fanout

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// fold puts actions into a backlog, with a take of n notifications for each
// negative one, and returns the handler that received it and the truth.
func fold(t interface{ Fatal(...any) }, policy Policy, script []byte) {
	c, w, b := newCluster(), newWitness(), newBacklog[*object](policy, describe)
	takes := func(n int) {
		run, _ := b.take(make([]change.Change[*object], 0, n))
		for _, n := range run {
			w.see(n)
		}
	}
	for _, code := range script {
		if code >= 0xe0 {
			takes(int(code-0xe0) + 1)
			continue
		}
		key := "k" + strconv.Itoa(int(code>>5)%3) // few, so that each has many changes
		for _, n := range c.do(key, action(code&0x1f)%actions) {
			b.add(&n)
		}
		if err := checkBacklog(b, c); err != "" {
			t.Fatal(err)
		}
	}
	takes(len(c.history) + 1)
	switch {
	case w.err != nil:
		t.Fatal(w.err)
	case !maps.Equal(w.view, c.state):
		t.Fatal("view ", w.view, ", want ", c.state)
	case !b.empty() || len(b.keys) != 0 || b.count != 0 || b.unseen != 0 || b.initial != 0:
		t.Fatal("the drained backlog is not empty: ", b)
	case len(w.seen)+int(b.folded) != len(c.history):
		t.Fatal("told ", len(w.seen), ", folded ", b.folded, ", published ", len(c.history))
	}
	if err := compare(policy, w.seen, c.history); err != nil {
		t.Fatal(err)
	}
}

// checkBacklog checks the structure and the bound of a backlog.
func checkBacklog(b *backlog[*object], c *cluster) string {
	count, unseen, perKey := 0, 0, map[string]int{}
	var prev *pending[*object]
	for p := b.head; p != nil; p = p.next {
		if p.prev != prev {
			return "a broken link"
		}
		prev = p
		count++
		perKey[p.Key]++
		if p.unseen {
			unseen++
		}
	}
	switch {
	case prev != b.tail:
		return "the tail is not the last entry"
	case count != b.count || unseen != b.unseen:
		return "the counts are wrong"
	case b.policy == ConflateState && count != len(perKey):
		return "more than one entry for a key"
	case b.policy == ConflateUpdates && count > 2*len(perKey)+2*len(c.state)+3*unseen:
		return "more than the bound"
	}
	return ""
}

func TestFoldKeepsEveryPromise(t *testing.T) {
	for _, policy := range []Policy{ConflateUpdates, ConflateState} {
		t.Run(policy.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				fold(t, policy, rapid.SliceOf(rapid.Byte()).Draw(t, "script"))
			})
		})
	}
}

func FuzzFold(f *testing.F) {
	f.Add(true, []byte{0, 0, 0, 1, 2, 3, 4, 0xe1, 0x20, 0x22})
	f.Add(false, []byte{0, 4, 4, 4, 0, 0, 0xe0, 0x04, 0x02, 0x41})
	f.Fuzz(func(t *testing.T, state bool, script []byte) {
		policy := ConflateUpdates
		if state {
			policy = ConflateState
		}
		fold(t, policy, script)
	})
}

// folded returns the notifications that a handler receives after a sequence of them for one key
// "a", each written as add 1, update 1→2, …, and how many were folded.
func folded(policy Policy, notifications ...change.Change[*object]) (out []string, folded int) {
	b := newBacklog[*object](policy, describe)
	for i := range notifications {
		notifications[i].Key = "a"
		b.add(&notifications[i])
	}
	run, _ := b.take(make([]change.Change[*object], 0, len(notifications)+1))
	for _, n := range run {
		switch {
		case n.Moved:
			out = append(out, show(n)+" moved")
		case n.Tombstone:
			out = append(out, show(n)+" tombstone")
		default:
			out = append(out, show(n))
		}
	}
	return out, int(b.folded)
}

func TestP10_FoldRules(t *testing.T) {
	x1, x2, x3 := &object{"x", 1}, &object{"x", 2}, &object{"x", 3}
	y1, y2, z1 := &object{"y", 1}, &object{"y", 2}, &object{"z", 1}
	add := func(o *object) change.Change[*object] { return change.Change[*object]{Type: change.Added, New: o} }
	upd := func(o, n *object) change.Change[*object] {
		return change.Change[*object]{Type: change.Updated, Old: o, New: n}
	}
	del := func(o *object) change.Change[*object] {
		return change.Change[*object]{Type: change.Deleted, Old: o, New: o}
	}
	moved := func(o *object) change.Change[*object] {
		return change.Change[*object]{Type: change.Deleted, Tombstone: true, Moved: true, Old: o, New: o}
	}
	type notes = []change.Change[*object]
	for _, test := range []struct {
		name           string
		in             notes
		updates, state []string
	}{
		{"updates fold, old is what was seen", notes{upd(x1, x2), upd(x2, x3)},
			[]string{"Updated a x/1→x/3"}, []string{"Updated a x/1→x/3"}},
		{"an update does not fold into an add, unless only the state counts", notes{add(x1), upd(x1, x2), upd(x2, x3)},
			[]string{"Added a -→x/1", "Updated a x/1→x/3"}, []string{"Added a -→x/3"}},
		{"an update to another incarnation stays", notes{upd(x1, x2), upd(x2, y1), upd(y1, y2)},
			[]string{"Updated a x/1→x/2", "Updated a x/2→y/1", "Updated a y/1→y/2"}, []string{"Updated a x/1→y/2"}},
		{"a delete stays", notes{upd(x1, x2), del(x2)},
			[]string{"Updated a x/1→x/2", "Deleted a x/2→x/2"}, []string{"Deleted a x/1→x/2"}},
		{"delete and add", notes{del(x1), add(y1), upd(y1, y2)},
			[]string{"Deleted a x/1→x/1", "Added a -→y/1", "Updated a y/1→y/2"}, []string{"Updated a x/1→y/2"}},
		{"came and went", notes{add(x1), upd(x1, x2), del(x2)},
			[]string{"Added a -→x/1", "Updated a x/1→x/2", "Deleted a x/2→x/2"}, nil},
		{"came, went and came", notes{add(x1), del(x1), add(y1)},
			[]string{"Added a -→x/1", "Deleted a x/1→x/1", "Added a -→y/1"}, []string{"Added a -→y/1"}},
		{"went, and another one came and went", notes{del(x1), add(y1), upd(y1, y2), del(y2)},
			[]string{"Deleted a x/1→x/1", "Added a -→y/1", "Updated a y/1→y/2", "Deleted a y/2→y/2"},
			[]string{"Deleted a x/1→x/1 tombstone"}},
		{"another one took its place and went", notes{upd(x1, x2), upd(x2, y1), del(y1)},
			[]string{"Updated a x/1→x/2", "Updated a x/2→y/1", "Deleted a y/1→y/1"},
			[]string{"Deleted a x/1→x/1 tombstone"}},
		{"another one took its place at once and went", notes{upd(x1, y1), del(y1)},
			[]string{"Updated a x/1→y/1", "Deleted a y/1→y/1"}, []string{"Deleted a x/1→x/1 tombstone"}},
		{"two came and went, and a third one came", notes{del(x1), add(y1), del(y1), add(z1)},
			[]string{"Deleted a x/1→x/1", "Added a -→y/1", "Deleted a y/1→y/1", "Added a -→z/1"},
			[]string{"Updated a x/1→z/1"}},
		{"went, and another one came and moved", notes{del(x1), add(y1), moved(y1)},
			[]string{"Deleted a x/1→x/1", "Added a -→y/1", "Deleted a y/1→y/1 moved"},
			[]string{"Deleted a x/1→x/1 tombstone"}},
		{"moved, came back and went", notes{moved(x1), add(x2), del(x2)},
			[]string{"Deleted a x/1→x/1 moved", "Added a -→x/2", "Deleted a x/2→x/2"}, []string{"Deleted a x/1→x/2"}},
		{"moved, and came back as it was", notes{moved(x1), add(x1)},
			[]string{"Deleted a x/1→x/1 moved", "Added a -→x/1"}, nil},
		{"gave way to another one, came back and went", notes{upd(x1, y1), upd(y1, x2), del(x2)},
			[]string{"Updated a x/1→y/1", "Updated a y/1→x/2", "Deleted a x/2→x/2"}, []string{"Deleted a x/1→x/2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for policy, want := range map[Policy][]string{ConflateUpdates: test.updates, ConflateState: test.state} {
				got, n := folded(policy, test.in...)
				if !slices.Equal(got, want) || len(got)+n != len(test.in) {
					t.Errorf("%v: %q, %d of %d folded, want %q", policy, got, n, len(test.in), want)
				}
			}
		})
	}
}

func TestP10_CountsWhatWasNotSeen(t *testing.T) {
	lifetimes := func(b *backlog[*object]) {
		c := newCluster()
		for i := range 10 {
			for _, a := range []action{modify, modify, remove} {
				for _, n := range c.do("k"+strconv.Itoa(i%3), a) {
					b.add(&n)
				}
			}
		}
	}
	b := newBacklog[*object](ConflateUpdates, describe)
	lifetimes(b)
	if b.unseen != 10 || b.count != 30 || b.leftOut != 0 {
		t.Errorf("ConflateUpdates: unseen %d, pending %d, left out %d, want 10, 30, 0", b.unseen, b.count, b.leftOut)
	}
	b.take(make([]change.Change[*object], 0, 1))
	if b.unseen != 9 {
		t.Errorf("after the first add was taken: unseen %d, want 9", b.unseen)
	}
	b = newBacklog[*object](ConflateState, describe)
	lifetimes(b)
	if b.unseen != 0 || b.count != 0 || b.leftOut != 10 {
		t.Errorf("ConflateState: unseen %d, pending %d, left out %d, want 0, 0, 10", b.unseen, b.count, b.leftOut)
	}
}

// An incarnation that began behind the backlog's first entry of its key is left out too.
func TestP10_CountsWhatWasLeftOutInBetween(t *testing.T) {
	seen, x, y := &object{"seen", 1}, &object{"x", 2}, &object{"y", 3}
	for name, begin := range map[string][]change.Change[*object]{
		"delete and add": {{Type: change.Deleted, Old: seen, New: seen}, {Type: change.Added, New: x}},
		"update":         {{Type: change.Updated, Old: seen, New: seen}, {Type: change.Updated, Old: seen, New: x}},
	} {
		b := newBacklog[*object](ConflateState, describe)
		for _, n := range append(begin, change.Change[*object]{Type: change.Updated, Old: x, New: y}) {
			b.add(&n)
		}
		if b.leftOut != 1 || b.count != 1 {
			t.Errorf("%s: left out %d, pending %d, want 1 and 1", name, b.leftOut, b.count)
		}
	}
}

// An update goes on folding when the add before it has been taken.
func TestP10_FoldsBehindATakenAdd(t *testing.T) {
	b := newBacklog[*object](ConflateUpdates, describe)
	states := []*object{{"x", 0}, {"x", 1}, {"x", 2}}
	b.add(&change.Change[*object]{Type: change.Added, New: states[0]})
	b.add(&change.Change[*object]{Type: change.Updated, Old: states[0], New: states[1]})
	b.take(make([]change.Change[*object], 0, 1))
	b.add(&change.Change[*object]{Type: change.Updated, Old: states[1], New: states[2]})
	if b.count != 1 || b.folded != 1 {
		t.Errorf("pending %d, folded %d, want 1 and 1", b.count, b.folded)
	}
}

func TestP10_FoldsWhereTheFirstStood(t *testing.T) {
	b := newBacklog[*object](ConflateUpdates, nil)
	publish := func(key string, from int) {
		b.add(&change.Change[*object]{Type: change.Updated, Key: key, Old: &object{state: from}, New: &object{state: from + 1}})
	}
	publish("hot", 0)
	publish("cold", 0)
	for i := range 100 {
		publish("hot", i+1)
	}
	run, _ := b.take(make([]change.Change[*object], 0, 10))
	if len(run) != 2 || run[0].Key != "hot" || run[0].New.state != 101 {
		t.Fatalf("took %v, want hot with its newest state first", run)
	}
}

// The synced mark is no notification.
func TestP10_TheMarkIsNotCounted(t *testing.T) {
	for _, policy := range []Policy{ConflateUpdates, ConflateState} {
		b := newBacklog[*object](policy, describe)
		add := func(key string) {
			b.add(&change.Change[*object]{Type: change.Added, Key: key, New: &object{"x", 1}, Initial: true})
		}
		add("a")
		b.addMark()
		add("b")
		for _, left := range []int{1, 1, 0} { // a, the mark and b are taken
			if b.take(make([]change.Change[*object], 0, 9)); b.count != left || b.initial != left {
				t.Errorf("%v: pending %d, initial %d, want %d and %d", policy, b.count, b.initial, left, left)
			}
		}
	}
}
