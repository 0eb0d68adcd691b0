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

// live returns the objects of a partition at a version, by key.
func (s *server) live(partition string, version int) map[string]*object {
	out := make(map[string]*object)
	for _, e := range s.events {
		switch {
		case e.version > version || !strings.HasPrefix(e.object.key, partition):
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

// restore takes the server back to an earlier version, as a restored backup does: later
// versions will be given again.
func (s *server) restore(version int) {
	s.version = version
	s.events = slices.DeleteFunc(s.events, func(e event) bool { return e.version > version })
}

// follower is the producer of one partition.
type follower struct {
	partition  string
	cursor     int  // events up to this version were pushed or listed
	reached    int  // the newest version given to the queue in this history
	mustList   bool // events were lost
	newHistory bool // and the server was restored
}

// model is a queue that follows the server.
type model struct {
	server    server
	followers []*follower
	queue     *delta.Queue[*object]
	cache     *cache
	newest    map[string]int    // the version of the last state of a key in the cache, deleted ones too
	reached   map[string]string // by partition, as the batches say
	rewinds   []pendingRewind   // Replaces with NewHistory that are queued
	replaces  int               // Replaces that are queued or processed
	popped    int               // Replaces that are processed
	replaced  map[string]bool
	synced    bool
	tokens    []any // pending, in order
	resyncs   int
}

// pendingRewind is the Replace, counted from the first, after which the versions of a partition
// start anew.
type pendingRewind struct {
	replace   int
	partition string
}

var partitions = []string{"n1/", "n2/"}

func newModel(t *rapid.T) *model {
	m := &model{
		cache: newCache(t), newest: make(map[string]int),
		reached: make(map[string]string), replaced: make(map[string]bool),
	}
	for _, p := range partitions {
		m.followers = append(m.followers, &follower{partition: p, mustList: true})
	}
	q, err := delta.New(delta.Options[*object]{
		Known: m.cache.known, Describe: describe, Compare: delta.CompareDecimal,
		Partitions: partitions, Limit: 1 << 30,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.queue = q
	return m
}

func (m *model) drawFollower(t *rapid.T) *follower {
	return rapid.SampledFrom(m.followers).Draw(t, "partition")
}

// Write changes the server: creates, updates, deletes, or gives a key back with its old UID (an
// object that left the selection and returned). A group is of several keys and has one version,
// as the deletes have that a lease of etcd brings about (kubernetes/kubernetes#110210).
func (m *model) Write(t *rapid.T) {
	group := map[string]bool{}
	isGroup := rapid.IntRange(0, 3).Draw(t, "group") == 0
	for range rapid.IntRange(1, 12).Draw(t, "writes") {
		partition := rapid.SampledFrom(partitions).Draw(t, "partition")
		key := partition + rapid.SampledFrom([]string{"", "a", "b", "c", "hot"}).Draw(t, "name")
		if isGroup && group[key] {
			continue
		}
		grouped := isGroup && len(group) > 0
		group[key] = true
		current := m.server.live(partition, m.server.version)[key]
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

// between returns the changes of a partition after one version and up to another.
func (m *model) between(partition string, after, upTo int) []delta.Event[*object] {
	var out []delta.Event[*object]
	for _, e := range m.server.events {
		if e.version <= after || e.version > upTo || !strings.HasPrefix(e.object.key, partition) {
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
	changes := m.between(f.partition, after, upTo)
	at := rapid.IntRange(0, len(changes)).Draw(t, "first part") // a group may arrive in two parts
	reached := ""
	if at > 0 {
		reached = changes[at-1].Version
	}
	if err := m.queue.Push(t.Context(), f.partition, reached, changes[:at]); err != nil {
		t.Fatal(err)
	}
	if err := m.queue.Push(t.Context(), f.partition, version(upTo), changes[at:]); err != nil {
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

// Bookmark says how far a partition is.
func (m *model) Bookmark(t *rapid.T) {
	f := m.drawFollower(t)
	if f.mustList {
		t.Skip("the follower has lost its place")
	}
	if err := m.queue.Bookmark(t.Context(), f.partition, version(f.cursor)); err != nil {
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

// Replace lists a partition, perhaps from a server that lags. Only a server without any object
// has a list without a version: what such a list says cannot be told from the past.
func (m *model) Replace(t *rapid.T) {
	f := m.drawFollower(t)
	m.list(t, f, rapid.IntRange(min(1, m.server.version), m.server.version).Draw(t, "listed"))
}

func (m *model) list(t *rapid.T, f *follower, listed int) {
	live := slices.Collect(maps.Values(m.server.live(f.partition, listed)))
	slices.SortFunc(live, func(a, b *object) int { return strings.Compare(a.key, b.key) })
	if rapid.Bool().Draw(t, "in another order") {
		live = rapid.Permutation(live).Draw(t, "order")
	}
	err := m.queue.Replace(t.Context(), f.partition, version(listed), items(live...),
		delta.ReplaceOptions{NewHistory: f.newHistory})
	if older := !f.newHistory && listed > 0 && listed < f.reached; older != errors.Is(err, delta.ErrOlder) || !older && err != nil {
		t.Fatalf("a list of version %d after %d: %v", listed, f.reached, err)
	}
	if err != nil {
		return
	}
	m.replaces++
	if f.newHistory {
		m.rewinds = append(m.rewinds, pendingRewind{m.replaces, f.partition})
	}
	f.cursor, f.reached, f.mustList, f.newHistory = listed, listed, false, false
}

// Resync adds a token.
func (m *model) Resync(t *rapid.T) {
	token := m.resyncs
	m.resyncs++
	m.tokens = append(m.tokens, token)
	if err := m.queue.Resync(token); err != nil {
		t.Fatal(err)
	}
}

// Pop processes one batch, if there is one.
func (m *model) Pop(t *rapid.T) { m.pop(t) }

// pop reports whether there was a batch.
func (m *model) pop(t *rapid.T) bool {
	err := m.queue.Pop(endsWhenIdle(t), func(b delta.Batch[*object]) {
		if b.Replaced {
			m.noteReplace(b.Marks[0].Partition)
		}
		if first := len(m.replaced) == len(partitions) && !m.synced; b.Synced != first {
			t.Fatalf("synced %v, replaced %v", b.Synced, m.replaced)
		}
		m.synced = m.synced || b.Synced
		m.checkOrder(t, b)
		m.cache.apply(b)
		for _, mark := range b.Marks {
			m.reached[mark.Partition] = mark.Version
		}
		for _, token := range b.Resync {
			if token != m.tokens[0] {
				t.Fatalf("resync %v, want %v", token, m.tokens[0])
			}
			m.tokens = m.tokens[1:]
		}
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return err == nil
}

// noteReplace lets the versions of a partition start anew where its history did.
func (m *model) noteReplace(partition string) {
	m.popped++
	m.replaced[partition] = true
	for _, r := range m.rewinds {
		if r.replace == m.popped && r.partition == partition {
			maps.DeleteFunc(m.newest, func(key string, _ int) bool { return strings.HasPrefix(key, partition) })
		}
	}
}

// checkOrder checks that the states of each key go forward.
func (m *model) checkOrder(t *rapid.T, b delta.Batch[*object]) {
	for _, d := range b.Changes {
		if d.Tombstone {
			continue // the state before once more
		}
		v, _ := strconv.Atoi(d.New.version)
		if newest := m.newest[d.Key]; v <= newest {
			t.Fatalf("%s after version %d of the key", text(d), newest)
		}
		m.newest[d.Key] = v
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
	if m.queue.Len() != 0 || len(m.tokens) > 0 {
		t.Fatalf("pending %d, tokens %v", m.queue.Len(), m.tokens)
	}
	for _, f := range m.followers {
		want := m.server.live(f.partition, m.server.version)
		if got := maps.Collect(m.cache.Prefix(f.partition)); !maps.Equal(got, want) {
			t.Fatalf("partition %s:\ncache  %v\nserver %v", f.partition, got, want)
		}
		if v := m.reached[f.partition]; v != version(f.reached) {
			t.Fatalf("partition %s: version %q, want %d", f.partition, v, f.reached)
		}
	}
}

func modelProperty(t *rapid.T) {
	m := newModel(t)
	t.Repeat(map[string]func(*rapid.T){
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

// The cache follows the server through lost events, replays, lagging lists, restored backups and
// any timing of pops: its states are a subsequence of the server's (P2), relists are one batch
// with deletes first (P8).
func TestP02_P08_Model(t *testing.T) { rapid.Check(t, modelProperty) }

func FuzzModel(f *testing.F) { f.Fuzz(rapid.MakeFuzz(modelProperty)) }
