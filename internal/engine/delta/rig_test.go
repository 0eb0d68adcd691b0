package delta_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
)

// object is a state of an object: its version is unique within a history.
type object struct {
	key, version, uid string
}

func (o *object) String() string {
	if o == nil {
		return "none"
	}
	return fmt.Sprintf("%s@%s#%s", o.key, o.version, o.uid)
}

func describe(o *object) (version, uid string) { return o.version, o.uid }

// state returns an object; version 0 is an empty one.
func state(key string, version int, uid string) *object {
	v := ""
	if version != 0 {
		v = strconv.Itoa(version)
	}
	return &object{key, v, uid}
}

func item(o *object) delta.Item[*object] {
	return delta.Item[*object]{Key: o.key, Version: o.version, UID: o.uid, Object: o}
}

func set(o *object) delta.Event[*object] {
	return delta.Event[*object]{Type: delta.Set, Item: item(o)}
}

func del(o *object) delta.Event[*object] {
	return delta.Event[*object]{Type: delta.Delete, Item: item(o)}
}

// unusable is a state that cannot be used, in an event, and staying is one in a list.
func unusable(o *object) delta.Event[*object] {
	e := delta.Event[*object]{Type: delta.Set, Unusable: true, Item: item(o), Err: errUnusable}
	e.Object = nil
	return e
}

func staying(o *object) delta.Unusable {
	return delta.Unusable{Key: o.key, Version: o.version, UID: o.uid, Err: errUnusable}
}

var errUnusable = errors.New("field size")

// merged is a state from a list of a part of the partition.
func merged(o *object) delta.Event[*object] {
	return delta.Event[*object]{Type: delta.Merged, Item: item(o)}
}

// gone is the end of an object without a final state.
func gone(o *object) delta.Event[*object] {
	return delta.Event[*object]{Type: delta.Gone, Item: delta.Item[*object]{Key: o.key, Version: o.version, UID: o.uid}}
}

// cache is the smallest consumer: it holds the states and checks that each delta fits them.
type cache struct {
	unknownDeletes bool // deletes of unknown keys may come
	t              failer
	states         map[string]*object
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newCache(t failer, initial ...*object) *cache {
	c := &cache{t: t, states: make(map[string]*object)}
	for _, o := range initial {
		c.states[o.key] = o
	}
	return c
}

func (c *cache) Get(key string) (*object, bool) { o, ok := c.states[key]; return o, ok }

func (c *cache) Prefix(prefix string) iter.Seq2[string, *object] {
	return func(yield func(string, *object) bool) {
		for _, key := range slices.Sorted(maps.Keys(c.states)) {
			if strings.HasPrefix(key, prefix) && !yield(key, c.states[key]) {
				return
			}
		}
	}
}

func (c *cache) known() delta.Known[*object] { return c }

// apply checks and applies a batch.
func (c *cache) apply(b *delta.Batch[*object]) {
	c.t.Helper()
	deletesOver := false
	for _, d := range b.Changes {
		old, exists := c.states[d.Key]
		if c.unknownDeletes && d.Type == change.Deleted && !exists {
			old, exists = d.Old, true
		}
		if old != d.Old && !(d.Type == change.Added && d.Old == nil) {
			c.t.Fatalf("%s: Old is %v, the state before is %v", text(d), d.Old, old)
		}
		if exists == (d.Type == change.Added) {
			c.t.Fatalf("%s: the key exists: %v", text(d), exists)
		}
		if b.Replaced && d.Type == change.Deleted && deletesOver {
			c.t.Fatalf("%s: a delete of a Replace after a change", text(d))
		}
		deletesOver = deletesOver || d.Type != change.Deleted
		if d.Type == change.Deleted {
			delete(c.states, d.Key)
		} else {
			c.states[d.Key] = d.New
		}
	}
}

// text writes a delta as "+new", "old>new", "-old/final" with the marks i(nitial), t(ombstone)
// and = (unchanged).
func text(d change.Change[*object]) string {
	s := ""
	switch d.Type {
	case change.Added:
		s = "+" + d.New.String()
	case change.Updated:
		s = d.Old.String() + ">" + d.New.String()
	case change.Deleted:
		s = "-" + d.Old.String() + "/" + d.New.String()
	}
	if d.Initial {
		s += " i"
	}
	if d.Tombstone {
		s += " t"
	}
	if d.Moved {
		s += " moved"
	}
	if d.Unchanged {
		s += " ="
	}
	return s
}

func texts(b *delta.Batch[*object]) []string {
	out := []string{}
	for _, d := range b.Changes {
		out = append(out, text(d))
	}
	return out
}

// rig is a queue over a cache, with the versions that the popped batches have reached.
type rig struct {
	*testing.T
	*delta.Queue[*object]
	cache   *cache
	reached map[string]string // versions by partition
	synced  bool
}

func newRig(t *testing.T, o delta.Options[*object], initial ...*object) *rig {
	t.Helper()
	c := newCache(t, initial...)
	o.Known = c.known
	if o.Describe == nil {
		o.Describe = describe
	}
	if o.Compare == nil {
		o.Compare = delta.CompareDecimal
	}
	q, err := delta.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, Queue: q, cache: c, reached: make(map[string]string)}
}

// push pushes to the partition "", from any goroutine; the version reached is that of the last
// change.
func (r *rig) push(changes ...delta.Event[*object]) {
	r.Helper()
	version := ""
	if n := len(changes); n > 0 {
		version = changes[n-1].Version
	}
	if err := r.Push(r.Context(), "", version, changes); err != nil {
		r.Error(err)
	}
}

// list replaces the partition "".
func (r *rig) list(version string, objects ...*object) {
	r.Helper()
	r.listOf("", version, objects...)
}

// listOf replaces a partition.
func (r *rig) listOf(partition, version string, objects ...*object) {
	r.Helper()
	r.must(r.Replace(r.Context(), partition, version, items(objects...), delta.ReplaceOptions{}))
}

// pushTo pushes to a partition; the version reached is that of the last event.
func (r *rig) pushTo(partition string, events ...delta.Event[*object]) {
	r.Helper()
	r.must(r.Push(r.Context(), partition, events[len(events)-1].Version, events))
}

// process pops one batch, and calls during while it is in process.
func (r *rig) process(during func(*delta.Batch[*object])) {
	r.Helper()
	r.must(r.Pop(r.Context(), func(b *delta.Batch[*object]) {
		during(b)
		r.apply(b)
	}))
}

// apply applies a batch to the cache and notes the versions that it has reached.
func (r *rig) apply(b *delta.Batch[*object]) {
	r.Helper()
	r.cache.apply(b)
	for _, partition := range b.Removed {
		delete(r.reached, partition)
	}
	for _, m := range b.Marks {
		r.reached[m.Partition] = m.Version
	}
	r.synced = r.synced || b.Synced
}

// must goes no further on an error.
func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func items(objects ...*object) []delta.Item[*object] {
	out := []delta.Item[*object]{}
	for _, o := range objects {
		out = append(out, item(o))
	}
	return out
}

// taken is a copy of a batch that Pop handed on.
type taken struct {
	deltas           []string
	marks            []delta.Mark
	resync           []any
	replaced, synced bool
	removed          string
}

// pop waits for a batch and applies it, on any goroutine.
func (r *rig) pop() taken {
	r.Helper()
	var out taken
	err := r.Pop(r.Context(), func(b *delta.Batch[*object]) {
		out = taken{texts(b), slices.Clone(b.Marks), slices.Clone(b.Resync), b.Replaced, b.Synced, strings.Join(b.Removed, " ")}
		r.apply(b)
	})
	if err != nil {
		r.Error(err)
	}
	return out
}

// expect pops one batch and compares its deltas.
func (r *rig) expect(want ...string) taken {
	r.Helper()
	got := r.pop()
	if !slices.Equal(got.deltas, want) {
		r.Fatalf("deltas\n got %q\nwant %q", got.deltas, want)
	}
	return got
}

// expectStale compares the number of dropped changes.
func (r *rig) expectStale(want uint64) {
	r.Helper()
	if got := r.Stale(); got != want {
		r.Fatalf("Stale() = %d, want %d", got, want)
	}
}

// idleContext ends when somebody begins to wait for its end: a Pop with it takes the pending
// changes and does not wait.
type idleContext struct {
	context.Context
	ended bool
}

func endsWhenIdle(t interface{ Context() context.Context }) context.Context {
	return &idleContext{Context: t.Context()}
}

func (c *idleContext) Done() <-chan struct{} {
	c.ended = true
	done := make(chan struct{})
	close(done)
	return done
}

func (c *idleContext) Err() error {
	if c.ended {
		return context.Canceled
	}
	return c.Context.Err()
}
