package delta_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
)

var partitions = []string{"n1/", "n2/"}

// oracle is the rules of the package, written down plainly: one change at a time, on maps, with
// nothing batched or bounded.
type oracle struct {
	states  map[string]*object
	deleted map[string]*object // the last version and UID of keys that are gone
	// unusable are the present states that cannot be used.
	unusable map[string]*object
	reached  map[string]string // by partition, at the end of the queue
	listed   map[string]string // by partition, the newest version of a list; there for partitions that have been replaced
	out      []string
	stale    uint64
}

// before reports whether version a is older than b, and same whether they are equal; neither for
// texts that are no versions.
func compareVersions(a, b string) (before, same bool) {
	x, err1 := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	if err1 != nil || err2 != nil || x == 0 || y == 0 || a[0] == '0' || b[0] == '0' || a[0] == '+' || b[0] == '+' {
		return false, false
	}
	return x < y, x == y
}

func seen(o, earlier *object) bool {
	before, same := compareVersions(o.version, earlier.version)
	return before || same && o.uid != "" && o.uid == earlier.uid
}

func (m *oracle) say(d change.Change[*object]) { m.out = append(m.out, text(d)) }

func (m *oracle) bury(o, last *object) {
	grave := *o
	if before, _ := compareVersions(o.version, last.version); before || grave.version == "" {
		grave.version = last.version
	}
	if grave.uid == "" {
		grave.uid = last.uid
	}
	delete(m.deleted, o.key)
	if grave.version != "" {
		m.deleted[o.key] = &grave
	}
}

// passed reports whether a later state of an object than o is known and cannot be used.
func (m *oracle) passed(o *object) bool {
	u := m.unusable[o.key]
	if u == nil {
		return false
	}
	before, _ := compareVersions(o.version, u.version)
	return before
}

func differ(a, b *object) bool { return a.uid != "" && b.uid != "" && a.uid != b.uid }

func (m *oracle) set(o *object, usable bool) {
	current, gone := m.states[o.key], m.deleted[o.key]
	listed, _ := compareVersions(o.version, m.listed[o.key[:len("n1/")]])
	switch {
	case current != nil && seen(o, current), current == nil && gone != nil && seen(o, gone), current == nil && listed, m.passed(o):
		m.stale++
		return
	case !usable:
		if m.unusable[o.key] = o; current != nil && differ(o, current) {
			m.say(change.Change[*object]{Type: change.Deleted, Old: current, New: current, Tombstone: true})
			delete(m.states, o.key)
			m.bury(current, current)
		}
		return
	case current != nil:
		m.say(change.Change[*object]{Type: change.Updated, Old: current, New: o})
	default:
		m.say(change.Change[*object]{Type: change.Added, New: o})
	}
	m.states[o.key] = o
	delete(m.deleted, o.key)
	delete(m.unusable, o.key)
}

func (m *oracle) remove(o *object, finalStateUnknown bool) {
	if m.passed(o) {
		m.stale++
		return
	}
	current, unusable := m.states[o.key], m.unusable[o.key]
	delete(m.unusable, o.key)
	if current == nil {
		if unusable == nil {
			m.stale++
		}
		last := m.deleted[o.key]
		if last == nil {
			last = &object{}
		}
		m.bury(o, last)
		return
	}
	if before, _ := compareVersions(o.version, current.version); before {
		m.stale++
		return
	}
	final := o
	if finalStateUnknown {
		final = current
	}
	if differ(current, final) {
		final, finalStateUnknown = current, true
	}
	m.say(change.Change[*object]{Type: change.Deleted, Old: current, New: final, Tombstone: finalStateUnknown})
	delete(m.states, o.key)
	m.bury(o, current)
}

// note notes the states of a list that cannot be used.
func (m *oracle) note(partition, version string, listed map[string]*object, stays []*object, newHistory bool) {
	maps.DeleteFunc(m.unusable, func(key string, u *object) bool {
		before, _ := compareVersions(version, u.version)
		stays := slices.ContainsFunc(stays, func(o *object) bool { return o.key == key })
		return strings.HasPrefix(key, partition) && !stays && (newHistory || !before)
	})
	for _, o := range stays {
		if l := listed[o.key]; l != nil {
			if before, _ := compareVersions(l.version, o.version); !before {
				delete(m.unusable, o.key)
				continue
			}
		}
		old := m.passed(o)
		if current := m.states[o.key]; current != nil {
			before, _ := compareVersions(o.version, current.version)
			old = old || before
		}
		if newHistory || !old {
			m.unusable[o.key] = o
		}
	}
}

func (m *oracle) replace(partition, version string, listed map[string]*object, stays []*object, o delta.ReplaceOptions) {
	m.note(partition, version, listed, stays, o.NewHistory)
	newHistory := o.NewHistory
	floor, again := m.listed[partition]
	initial := !again
	if before, _ := compareVersions(version, floor); newHistory || version != "" && !before {
		floor = version
	}
	m.listed[partition] = floor
	if newHistory {
		maps.DeleteFunc(m.deleted, func(key string, _ *object) bool { return strings.HasPrefix(key, partition) })
	}
	graves := maps.Clone(m.deleted)
	for _, key := range slices.Sorted(maps.Keys(m.states)) {
		current := m.states[key]
		if listed[key] != nil || !strings.HasPrefix(key, partition) {
			continue
		}
		before, _ := compareVersions(version, current.version)
		if i := slices.IndexFunc(stays, func(o *object) bool { return o.key == key }); i >= 0 && !before {
			older, _ := compareVersions(stays[i].version, current.version)
			before = older || !differ(stays[i], current)
		}
		if before && !newHistory {
			continue
		}
		m.say(change.Change[*object]{Type: change.Deleted, Old: current, New: current, Tombstone: true, Initial: initial})
		delete(m.states, key)
		if _, ordered := compareVersions(version, version); !ordered && !newHistory {
			m.bury(current, current)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		o, current, gone := listed[key], m.states[key], graves[key]
		switch {
		case current == nil:
			if gone != nil {
				before, same := compareVersions(gone.version, version)
				if !before && !same && seen(o, gone) {
					m.stale++
					continue
				}
			}
			m.say(change.Change[*object]{Type: change.Added, New: o, Initial: initial})
			delete(m.deleted, key)
		default:
			before, _ := compareVersions(o.version, current.version)
			if !newHistory && o.version != "" && o.uid != "" && o.version == current.version && o.uid == current.uid {
				continue
			}
			if !newHistory && before {
				m.stale++
				continue
			}
			m.say(change.Change[*object]{Type: change.Updated, Old: current, New: o, Initial: initial})
		}
		m.states[key] = o
	}
}

// bytesource turns fuzz input into choices.
type bytesource struct{ data []byte }

func (b *bytesource) next(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	v := int(b.data[0]) % n
	b.data = b.data[1:]
	return v
}

func (b *bytesource) object(partition string) *object {
	versions := []string{"", "0", "x", "07", "+3", "1", "2", "3", "4", "5", "9", "10", "11", "99", "100", "18446744073709551615"}
	return &object{
		key:     partition + string(rune('a'+b.next(4))),
		version: versions[b.next(len(versions))],
		uid:     []string{"", "U", "V"}[b.next(3)],
	}
}

// FuzzQueueAgainstOracle plays any operations with any versions, good or bad, in any order,
// popped at any time, and compares every delta with those of the plain rules.
func FuzzQueueAgainstOracle(f *testing.F) {
	f.Add([]byte("a push, a pop, a replace, a pop and so on"))
	f.Add([]byte{0, 0, 3, 0, 5, 1, 0, 6, 1, 2, 7, 1, 5, 1, 0, 8, 2, 0, 9, 1, 1, 9, 2, 5, 5})
	for seed := range 8 {
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte((i*i*(2*seed+3) + i*(seed+7)) >> 2)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &bytesource{data}
		m := &oracle{states: map[string]*object{}, deleted: map[string]*object{}, unusable: map[string]*object{}, reached: map[string]string{}, listed: map[string]string{}}
		c := newCache(t)
		q, err := delta.New(delta.Options[*object]{Known: c.known, Describe: describe, Compare: delta.CompareDecimal,
			Partitions: partitions, Limit: 1 << 30, RememberDeletes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		reached := map[string]string{}
		pop := func() bool {
			err := q.Pop(endsWhenIdle(t), func(b *delta.Batch[*object]) {
				got = append(got, texts(b)...)
				c.apply(b)
				for _, mark := range b.Marks {
					reached[mark.Partition] = mark.Version
				}
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			return err == nil
		}
		for len(b.data) > 0 {
			partition := partitions[b.next(2)]
			switch b.next(6) {
			case 0, 1:
				fuzzPush(t, q, m, b, partition)
			case 2:
				fuzzReplace(t, q, m, b, partition)
			case 3:
				v := b.object(partition).version
				if err := q.Bookmark(t.Context(), partition, v); err != nil {
					t.Fatal(err)
				}
				m.reach(partition, v)
			case 4:
				if err := q.Resync(len(b.data)); err != nil {
					t.Fatal(err)
				}
			case 5:
				pop()
			}
		}
		for pop() {
		}
		if !slices.Equal(got, m.out) {
			t.Fatalf("deltas differ\n got %q\nwant %q", got, m.out)
		}
		if !maps.Equal(c.states, m.states) || q.Stale() != m.stale {
			t.Fatalf("states %v, want %v; stale %d, want %d", c.states, m.states, q.Stale(), m.stale)
		}
		for _, partition := range partitions {
			checkUnusable(t, q, m, partition)
		}
		for _, partition := range partitions {
			if reached[partition] != m.reached[partition] {
				t.Fatalf("partition %s: version %q, want %q", partition, reached[partition], m.reached[partition])
			}
		}
	})
}

// checkUnusable compares the states that cannot be used.
func checkUnusable(t *testing.T, q *delta.Queue[*object], m *oracle, partition string) {
	t.Helper()
	var want []string
	for key, o := range m.unusable {
		if u, ok := q.UnusableState(key); !ok || u != staying(o) {
			t.Fatalf("the state of %s that cannot be used is %v, %v; want %v", key, u, ok, o)
		}
		if strings.HasPrefix(key, partition) {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	n, first := q.Unusable(partition)
	if n != len(want) || n > 0 && first.Key != want[0] {
		t.Fatalf("%d objects cannot be used, the first is %v; want %v", n, first, want)
	}
}

func (m *oracle) reach(partition, version string) {
	if before, _ := compareVersions(version, m.reached[partition]); version != "" && !before {
		m.reached[partition] = version
	}
}

func fuzzPush(t *testing.T, q *delta.Queue[*object], m *oracle, b *bytesource, partition string) {
	var changes []delta.Event[*object]
	for range b.next(40) {
		o := b.object(partition)
		switch b.next(6) {
		case 0:
			changes = append(changes, gone(o))
			m.remove(o, true)
		case 1:
			changes = append(changes, del(o))
			m.remove(o, false)
		case 2:
			changes = append(changes, unusable(o))
			m.set(o, false)
		default:
			changes = append(changes, set(o))
			m.set(o, true)
		}
	}
	v := b.object(partition).version
	if err := q.Push(t.Context(), partition, v, changes); err != nil {
		t.Fatal(err)
	}
	m.reach(partition, v)
}

func fuzzReplace(t *testing.T, q *delta.Queue[*object], m *oracle, b *bytesource, partition string) {
	listed := map[string]*object{}
	var all []delta.Item[*object]
	for range b.next(8) {
		o := b.object(partition)
		all = append(all, item(o))
		if earlier := listed[o.key]; earlier != nil {
			if before, _ := compareVersions(o.version, earlier.version); before {
				continue
			}
		}
		listed[o.key] = o
	}
	v, options := b.object(partition).version, delta.ReplaceOptions{NewHistory: b.next(4) == 0}
	var stays []*object
	for range b.next(3) {
		if o := b.object(partition); !slices.ContainsFunc(stays, func(s *object) bool { return s.key == o.key }) {
			stays = append(stays, o)
			options.Stays = append(options.Stays, staying(o))
		}
	}
	err := q.Replace(t.Context(), partition, v, all, options)
	if before, _ := compareVersions(v, m.reached[partition]); before && !options.NewHistory {
		if !errors.Is(err, delta.ErrOlder) {
			t.Fatalf("a list of version %s after %s: %v", v, m.reached[partition], err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.reached[partition] = v
	m.replace(partition, v, listed, stays, options)
}
