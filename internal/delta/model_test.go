package delta_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
)

// server is a model of a collection with a history of versions.
type server struct {
	version int
	events  []event // ascending by version
	uids    int
}

type event struct {
	version int
	gone    bool
	object  *object
}

// live returns the objects of a scope at a version, by key.
func (s *server) live(scope string, version int) map[string]*object {
	out := make(map[string]*object)
	for _, e := range s.events {
		switch {
		case e.version > version || !strings.HasPrefix(e.object.key, scope):
		case e.gone:
			delete(out, e.object.key)
		default:
			out[e.object.key] = e.object
		}
	}
	return out
}

// write records a new state of a key, of the version of the write before if it is one of a group.
func (s *server) write(key, uid string, gone, grouped bool) {
	if !grouped || s.version == 0 {
		s.version++
	}
	s.events = append(s.events, event{s.version, gone, state(key, s.version, uid)})
}

// restore takes the server back to an earlier version, as a restored backup does: later versions will be given again.
func (s *server) restore(version int) {
	s.version = version
	s.events = slices.DeleteFunc(s.events, func(e event) bool { return e.version > version })
}

// follower is the producer of one scope.
type follower struct {
	scope      string
	cursor     int  // events up to this version were pushed or listed
	reached    int  // the newest version given to the queue in this history
	mustList   bool // events were lost
	newHistory bool // and the server was restored
}

// model drives a folding and a plain queue in lockstep from one server.
type model struct {
	server    server
	followers []*follower
	queues    [2]*delta.Queue[*object] // the first folds
	caches    [2]*cache
	newest    [2]map[string]int // the version of the last state of a key in the cache, deleted ones too
	rewinds   []pendingRewind   // Replaces with NewHistory that are queued
	replaces  int               // Replaces that are queued or processed
	popped    int               // Replaces that are processed
	replaced  map[string]bool
	tokens    []any // pending, in order
	resyncs   int
}

// pendingRewind is the Replace, counted from the first, after which the versions of a scope start anew.
type pendingRewind struct {
	replace int
	scope   string
}

var scopes = []string{"n1/", "n2/"}

func newModel(t *rapid.T) *model {
	m := &model{replaced: make(map[string]bool)}
	for _, s := range scopes {
		m.followers = append(m.followers, &follower{scope: s, mustList: true})
	}
	for i, foldAbove := range []int{rapid.IntRange(1, 12).Draw(t, "foldAbove"), 1 << 30} {
		m.caches[i] = newCache(t)
		m.newest[i] = make(map[string]int)
		q, err := delta.New(delta.Options[*object]{
			Known: m.caches[i].known, Describe: describe, Compare: delta.CompareDecimal,
			Scopes: scopes, FoldAbove: foldAbove, Limit: 1 << 30,
		})
		if err != nil {
			t.Fatal(err)
		}
		m.queues[i] = q
	}
	return m
}

// each calls a producer's method of both queues and returns the error, which must be the same of both.
func (m *model) each(t *rapid.T, call func(*delta.Queue[*object]) error) error {
	a, b := call(m.queues[0]), call(m.queues[1])
	if (a == nil) != (b == nil) {
		t.Fatalf("the queues answer differently: %v, %v", a, b)
	}
	return a
}

func (m *model) drawFollower(t *rapid.T) *follower {
	return rapid.SampledFrom(m.followers).Draw(t, "scope")
}

// Write changes the server: creates, updates, deletes, or gives a key back with its old UID (an object that left the selection and returned).
// A group is of several keys and has one version, as the deletes have that a lease of etcd brings about (kubernetes/kubernetes#110210).
func (m *model) Write(t *rapid.T) {
	group := map[string]bool{}
	isGroup := rapid.IntRange(0, 3).Draw(t, "group") == 0
	for range rapid.IntRange(1, 12).Draw(t, "writes") {
		scope := rapid.SampledFrom(scopes).Draw(t, "scope")
		key := scope + rapid.SampledFrom([]string{"", "a", "b", "c", "hot"}).Draw(t, "name")
		if isGroup && group[key] {
			continue
		}
		grouped := isGroup && len(group) > 0
		group[key] = true
		current := m.server.live(scope, m.server.version)[key]
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		switch {
		case current == nil:
			m.server.uids++
			uid := "U" + strconv.Itoa(m.server.uids)
			if i := lastIndex(m.server.events, key); i >= 0 && kind < 3 {
				uid = m.server.events[i].object.uid
			}
			m.server.write(key, uid, false, grouped)
		case kind < 2:
			m.server.write(key, current.uid, true, grouped)
		default:
			m.server.write(key, current.uid, false, grouped)
		}
	}
}

func lastIndex(events []event, key string) int {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].object.key == key {
			return i
		}
	}
	return -1
}

// between returns the changes of a scope after one version and up to another.
func (m *model) between(scope string, after, upTo int) []delta.Event[*object] {
	var out []delta.Event[*object]
	for _, e := range m.server.events {
		if e.version <= after || e.version > upTo || !strings.HasPrefix(e.object.key, scope) {
			continue
		}
		if e.gone {
			out = append(out, del(e.object))
		} else {
			out = append(out, set(e.object))
		}
	}
	return out
}

func (m *model) push(t *rapid.T, f *follower, after, upTo int) {
	changes := m.between(f.scope, after, upTo)
	at := rapid.IntRange(0, len(changes)).Draw(t, "first part") // a group may arrive in two parts
	reached := ""
	if at > 0 {
		reached = changes[at-1].Version
	}
	if err := m.each(t, func(q *delta.Queue[*object]) error {
		if err := q.Push(t.Context(), f.scope, reached, changes[:at]); err != nil {
			return err
		}
		return q.Push(t.Context(), f.scope, version(upTo), changes[at:])
	}); err != nil {
		t.Fatal(err)
	}
	f.cursor, f.reached = max(f.cursor, upTo), max(f.reached, upTo)
}

func version(v int) string {
	if v == 0 {
		return ""
	}
	return strconv.Itoa(v)
}

// Push hands on what happened since, in part or wholly.
func (m *model) Push(t *rapid.T) {
	f := m.drawFollower(t)
	if f.mustList {
		t.Skip("the follower has lost its place")
	}
	m.push(t, f, f.cursor, rapid.IntRange(f.cursor, m.server.version).Draw(t, "upTo"))
}

// PushReplay hands on events again, as after a reconnect to a server that lags.
func (m *model) PushReplay(t *rapid.T) {
	f := m.drawFollower(t)
	if f.mustList {
		t.Skip("the follower has lost its place")
	}
	upTo := rapid.IntRange(0, f.cursor).Draw(t, "upTo")
	m.push(t, f, rapid.IntRange(0, upTo).Draw(t, "after"), upTo)
}

// Bookmark says how far a scope is.
func (m *model) Bookmark(t *rapid.T) {
	f := m.drawFollower(t)
	if f.mustList {
		t.Skip("the follower has lost its place")
	}
	if err := m.each(t, func(q *delta.Queue[*object]) error { return q.Bookmark(t.Context(), f.scope, version(f.cursor)) }); err != nil {
		t.Fatal(err)
	}
}

// Lose makes a follower miss events.
func (m *model) Lose(t *rapid.T) { m.drawFollower(t).mustList = true }

// Restore takes the server back.
func (m *model) Restore(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("not this time")
	}
	m.server.restore(rapid.IntRange(0, m.server.version).Draw(t, "version"))
	for _, f := range m.followers {
		f.mustList, f.newHistory, f.cursor = true, true, 0
	}
}

// Replace lists a scope, perhaps from a server that lags. Only a server without any object has a list without a version: what such
// a list says cannot be told from the past.
func (m *model) Replace(t *rapid.T) {
	f := m.drawFollower(t)
	m.list(t, f, rapid.IntRange(min(1, m.server.version), m.server.version).Draw(t, "listed"))
}

func (m *model) list(t *rapid.T, f *follower, listed int) {
	live := slices.Collect(maps.Values(m.server.live(f.scope, listed)))
	slices.SortFunc(live, func(a, b *object) int { return strings.Compare(a.key, b.key) })
	if rapid.Bool().Draw(t, "in another order") {
		live = rapid.Permutation(live).Draw(t, "order")
	}
	err := m.each(t, func(q *delta.Queue[*object]) error {
		return q.Replace(t.Context(), f.scope, version(listed), items(live...), delta.ReplaceOptions{NewHistory: f.newHistory})
	})
	if older := !f.newHistory && listed > 0 && listed < f.reached; older != errors.Is(err, delta.ErrOlder) || !older && err != nil {
		t.Fatalf("a list of version %d after %d: %v", listed, f.reached, err)
	}
	if err != nil {
		return
	}
	m.replaces++
	if f.newHistory {
		m.rewinds = append(m.rewinds, pendingRewind{m.replaces, f.scope})
	}
	f.cursor, f.reached, f.mustList, f.newHistory = listed, listed, false, false
}

// Resync adds a token.
func (m *model) Resync(t *rapid.T) {
	token := m.resyncs
	m.resyncs++
	m.tokens = append(m.tokens, token)
	if err := m.each(t, func(q *delta.Queue[*object]) error { return q.Resync(token) }); err != nil {
		t.Fatal(err)
	}
}

// Pop processes one batch of both queues, if there is one.
func (m *model) Pop(t *rapid.T) { m.pop(t) }

// pop reports whether there was a batch.
func (m *model) pop(t *rapid.T) bool {
	var batches [2]taken
	var lasting [2][]string // adds and deletes
	var updates [2][]string
	var said [2]bool
	for i, q := range m.queues {
		err := q.Pop(endsWhenIdle(t), func(b delta.Batch[*object]) {
			said[i] = true
			batches[i] = taken{nil, slices.Clone(b.Marks), slices.Clone(b.Resync), b.Replaced, b.Synced, strings.Join(b.Removed, " ")}
			if b.Replaced {
				m.noteReplace(i, b.Marks[0].Scope)
			}
			m.checkOrder(t, i, b)
			for _, d := range b.Changes {
				if d.Type == change.Updated {
					updates[i] = append(updates[i], d.Key+"@"+d.New.version)
				} else {
					lasting[i] = append(lasting[i], text(d))
				}
			}
			m.caches[i].apply(b)
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	a, b := batches[0], batches[1]
	if said[0] != said[1] || !slices.Equal(a.marks, b.marks) || !slices.Equal(a.resync, b.resync) || a.replaced != b.replaced || a.synced != b.synced {
		t.Fatalf("batches differ: %+v, %+v", a, b)
	}
	slices.Sort(lasting[0]) // the order between keys is not promised
	slices.Sort(lasting[1])
	if !slices.Equal(lasting[0], lasting[1]) {
		t.Fatalf("folding changed adds or deletes:\n%q\n%q", lasting[0], lasting[1])
	}
	for _, u := range updates[0] {
		if !slices.Contains(updates[1], u) {
			t.Fatalf("folding made up the update %s", u)
		}
	}
	for _, token := range a.resync {
		if token != m.tokens[0] {
			t.Fatalf("resync %v, want %v", token, m.tokens[0])
		}
		m.tokens = m.tokens[1:]
	}
	if !maps.Equal(m.caches[0].states, m.caches[1].states) {
		t.Fatalf("caches differ: %v, %v", m.caches[0].states, m.caches[1].states)
	}
	return said[0]
}

// noteReplace lets the versions of a scope start anew where its history did.
func (m *model) noteReplace(i int, scope string) {
	if i == 0 {
		m.popped++
		m.replaced[scope] = true
	}
	for _, r := range m.rewinds {
		if r.replace == m.popped && r.scope == scope {
			maps.DeleteFunc(m.newest[i], func(key string, _ int) bool { return strings.HasPrefix(key, scope) })
		}
	}
}

// checkOrder checks that the states of each key go forward.
func (m *model) checkOrder(t *rapid.T, i int, b delta.Batch[*object]) {
	for _, d := range b.Changes {
		if d.Tombstone {
			continue // the state before once more
		}
		v, _ := strconv.Atoi(d.New.version)
		if newest := m.newest[i][d.Key]; v <= newest {
			t.Fatalf("%s after version %d of the key", text(d), newest)
		}
		m.newest[i][d.Key] = v
	}
}

// Check holds after every step.
func (m *model) Check(t *rapid.T) {
	for i, q := range m.queues {
		if q.HasSynced() != (len(m.replaced) == len(scopes)) {
			t.Fatalf("HasSynced %v, replaced %v", q.HasSynced(), m.replaced)
		}
		if q.Len() != len(q.List()) {
			t.Fatalf("queue %d: Len %d, List %d", i, q.Len(), len(q.List()))
		}
	}
}

// finish brings everything home and compares the caches with the server.
func (m *model) finish(t *rapid.T) {
	for _, f := range m.followers {
		if f.mustList {
			m.list(t, f, m.server.version)
		} else {
			m.push(t, f, f.cursor, m.server.version)
		}
	}
	for m.pop(t) {
	}
	if m.queues[0].Len() != 0 || m.queues[1].Len() != 0 || len(m.tokens) > 0 {
		t.Fatalf("pending %d, %d, tokens %v", m.queues[0].Len(), m.queues[1].Len(), m.tokens)
	}
	for _, f := range m.followers {
		want := m.server.live(f.scope, m.server.version)
		for i, c := range m.caches {
			got := maps.Collect(c.Prefix(f.scope))
			if !maps.Equal(got, want) {
				t.Fatalf("scope %s, queue %d:\ncache  %v\nserver %v", f.scope, i, got, want)
			}
			if v := m.queues[i].Version(f.scope); v != version(f.reached) {
				t.Fatalf("scope %s, queue %d: version %q, want %d", f.scope, i, v, f.reached)
			}
		}
	}
}

func modelProperty(t *rapid.T) {
	m := newModel(t)
	t.Repeat(map[string]func(*rapid.T){
		"":         m.Check,
		"write":    m.Write,
		"push":     m.Push,
		"replay":   m.PushReplay,
		"bookmark": m.Bookmark,
		"lose":     m.Lose,
		"restore":  m.Restore,
		"replace":  m.Replace,
		"resync":   m.Resync,
		"pop":      m.Pop,
	})
	m.finish(t)
}

// The cache follows the server through lost events, replays, lagging lists, restored backups, folding and any timing of pops:
// its states are a subsequence of the server's (P2), relists are one batch with deletes first (P8), adds and deletes never fold (P10).
func TestP02_P08_P10_Model(t *testing.T) { rapid.Check(t, modelProperty) }

func FuzzModel(f *testing.F) { f.Fuzz(rapid.MakeFuzz(modelProperty)) }
