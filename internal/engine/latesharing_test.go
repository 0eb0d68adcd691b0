package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/engine/reflector"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// state is a state of an object, and a copy of it if sharing has replaced it.
type state struct {
	version int
	shared  bool
}

// states lists the object "o" in version 1, later lists being of version 100, and watches its events.
type states struct {
	ctx    context.Context
	events chan source.Event[*state]
	lists  *atomic.Int64
}

func itemOf(key string, version int) source.Item[*state] {
	return source.Item[*state]{
		Key: key, UID: "u", Version: fmt.Sprint(version), Object: &state{version: version},
	}
}

func (s states) List(context.Context, source.ListOptions) (source.Page[*state], error) {
	version := "1"
	if s.lists.Add(1) > 1 {
		version = "100"
	}
	return source.Page[*state]{Version: version, Items: []source.Item[*state]{itemOf("o", 1)}}, nil
}

func (s states) Watch(ctx context.Context, _ source.WatchOptions) (source.Stream[*state], error) {
	return states{ctx, s.events, s.lists}, nil
}

func (states) Close() error { return nil }

func (s states) Next() ([]source.Event[*state], error) {
	select {
	case e := <-s.events:
		if e.Err != nil { // the end of the watch
			return nil, e.Err
		}
		return []source.Event[*state]{e}, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// sharedStates is a running collection whose objects are shared late. duringShare, if there is one,
// runs while the next object is shared.
type sharedStates struct {
	*Collection[*state]
	events      chan source.Event[*state]
	duringShare atomic.Pointer[func()]
	received    atomic.Int64 // by a handler
}

func runStates(t *testing.T, with ...func(*Options[*state])) *sharedStates {
	s := &sharedStates{events: make(chan source.Event[*state])}
	share := func(given *state) *state {
		if f := s.duringShare.Swap(nil); f != nil {
			(*f)()
		}
		return &state{version: given.version, shared: true}
	}
	o := Options[*state]{
		Name:     "states",
		Describe: func(s *state) (version, uid string) { return fmt.Sprint(s.version), "u" },
		Share:    func() func(*state) *state { return share },
		Part: func(context.Context, string, source.Scope) Part[*state] {
			return Part[*state]{Source: states{events: s.events, lists: new(atomic.Int64)}, Reflector: reflector.Options[*state]{
				Transport: source.Transport{NoStreamedLists: true},
			}}
		},
	}
	for _, f := range with {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Collection = c
	receive := func(change.Change[*state]) { s.received.Add(1) }
	if _, err := c.Subscribe(receive, false, fanout.SubscriptionOptions{}); err != nil {
		t.Fatal(err)
	}
	term, cancel := context.WithCancel(t.Context())
	ctx, err := c.Claim(term)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	synctest.Wait()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return s
}

func (s *sharedStates) send(t source.EventType, key string, version int) {
	s.events <- source.Event[*state]{Type: t, Item: itemOf(key, version)}
	synctest.Wait()
}

// check compares the cached state of a key.
func (s *sharedStates) check(t *testing.T, key string, version int, shared bool) {
	t.Helper()
	synctest.Wait()
	got, ok := s.Store().Get(key)
	if !ok || *got != (state{version, shared}) {
		t.Errorf("%s is %+v, cached %t; want version %d, shared: %t", key, got, ok, version, shared)
	}
}

func TestObjectsOfAListAreSharedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runStates(t)
		s.check(t, "o", 1, true)
		s.duringShare.Store(new(func() { t.Error("an object of a list is shared later too") }))
		time.Sleep(time.Minute)
	})
}

// TestObjectsAreSharedInGroups: batches wait while some shared objects are cached, not for all of
// them.
func TestObjectsAreSharedInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most, shared int
		s := runStates(t, func(o *Options[*state]) {
			o.Observe = func(changes []change.Change[*state]) {
				if most = max(most, len(changes)); len(changes) > 0 && changes[0].New.shared {
					shared += len(changes)
				}
			}
		})
		const objects = 2*sharedAtOnce + 1
		for i := range objects {
			s.send(source.Added, fmt.Sprint(i), 2+i)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != sharedAtOnce || shared != 1+objects { // with the one of the list
			t.Errorf("%d objects are shared, up to %d at once", shared, most)
		}
	})
}

// TestSharingEndsWithTheRun, although other objects are to be shared.
func TestSharingEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runStates(t)
		for i := range 3 {
			s.send(source.Added, fmt.Sprint(i), 2+i)
		}
		s.duringShare.Store(new(func() {
			s.End(false)
			s.duringShare.Store(new(func() { t.Error("an object is shared after the end of Run") }))
		}))
		time.Sleep(time.Minute)
	})
}

// TestQuietObjectsAreShared changes an object, and shares it once it is quiet. One that changes
// goes on unshared, and one that is gone stays so.
func TestQuietObjectsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runStates(t)
		s.send(source.Modified, "o", 2)
		s.send(source.Added, "gone", 3)
		s.send(source.Deleted, "gone", 4)
		version := 5
		for ; version < 15; version++ {
			s.send(source.Modified, "busy", version)
			s.check(t, "busy", version, false)
			if version < 7 {
				s.check(t, "o", 2, false)
			}
			time.Sleep(quietTime / 2)
		}
		s.check(t, "o", 2, true)
		time.Sleep(2 * quietTime)
		s.check(t, "busy", version-1, true)
		if _, ok := s.Store().Get("gone"); ok {
			t.Error("an object that is gone is cached")
		}
		if want := int64(1 + 1 + 2 + 10); s.received.Load() != want {
			t.Errorf("a handler received %d notifications, want %d", s.received.Load(), want)
		}
	})
}

// TestChangeDuringSharing changes an object while its state before is shared.
func TestChangeDuringSharing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runStates(t)
		s.send(source.Modified, "o", 2)
		changed := make(chan bool)
		s.duringShare.Store(new(func() {
			changed <- true
			<-changed
		}))
		<-changed
		s.send(source.Modified, "o", 3)
		changed <- true
		s.check(t, "o", 3, false)
		time.Sleep(2 * quietTime)
		s.check(t, "o", 3, true)
	})
}

func TestOnlyPointersAreSame(t *testing.T) {
	p := &state{}
	type uncomparable struct{ labels map[string]string }
	u := uncomparable{labels: map[string]string{}}
	for _, tt := range []struct {
		a, b any
		want bool
	}{{p, p, true}, {p, &state{}, false}, {u, u, false}, {p, nil, false}, {nil, nil, false}} {
		if got := areSame(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v: %t, want %t", tt.a, tt.b, got, tt.want)
		}
	}
}

// BenchmarkReplaceEqual caches equal objects among 50,000: how long batches wait.
func BenchmarkReplaceEqual(b *testing.B) {
	byVersion := func(s *state) ([]string, error) { return []string{fmt.Sprint(s.version % 100)}, nil }
	c, err := New(Options[*state]{
		Name:     "states",
		Describe: func(s *state) (version, uid string) { return fmt.Sprint(s.version), "u" },
		Indexes:  map[any]store.IndexFunc[*state]{"version": byVersion},
	})
	if err != nil {
		b.Fatal(err)
	}
	const objects = 50_000
	all := make([]change.Change[*state], objects)
	c.WriteByHand(func(s *store.Store[*state]) {
		s.Update(func(batch *store.Batch[*state]) {
			for i := range all {
				all[i] = change.Change[*state]{Key: fmt.Sprint("default/o-", i), New: &state{version: i}}
				batch.Set(all[i].Key, all[i].New)
			}
		})
	})
	for n := 0; b.Loop(); n++ {
		begin := n * sharedAtOnce * 7919 % (objects - sharedAtOnce)
		equal := slices.Clone(all[begin : begin+sharedAtOnce])
		for i := range equal {
			at := begin + i
			equal[i].Old, equal[i].New = all[at].New, &state{version: at}
			all[at].New = equal[i].New
		}
		c.late.replaceEqual(equal)
	}
}

// TestP11_EqualObjectsAreNotIndexedAgain: an index function is called, and its failure counts, once for
// each state of an object. Neither late sharing nor a list that finds the state unchanged is another one.
func TestP11_EqualObjectsAreNotIndexedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		s := runStates(t, func(o *Options[*state]) {
			o.ReportUnchanged = true
			o.Indexes = map[any]store.IndexFunc[*state]{"fails": func(s *state) ([]string, error) {
				calls[fmt.Sprint(s.version)]++
				if s.version == 2 {
					return nil, errors.New("not this one")
				}
				return []string{"value"}, nil
			}}
		})
		check := func(when string, errs uint64, want map[string]int) {
			t.Helper()
			if h := s.Health(); h.IndexErrors != errs || !maps.Equal(calls, want) {
				t.Errorf("%s: %d index errors, calls %v; want %d and %v", when, h.IndexErrors, calls, errs, want)
			}
		}
		s.send(source.Added, "a", 2)
		s.send(source.Added, "b", 3)
		check("at first", 1, map[string]int{"1": 1, "2": 1, "3": 1})
		time.Sleep(time.Minute)
		s.check(t, "a", 2, true)
		s.check(t, "b", 3, true)
		check("shared", 1, map[string]int{"1": 1, "2": 1, "3": 1})
		index, _ := s.Store().Snapshot().Index("fails")
		for key, obj := range index.Lookup("value") {
			if cached, _ := s.Store().Get(key); cached != obj {
				t.Errorf("the index has %+v for %s, the cache %+v", obj, key, cached)
			}
		}
		before := s.received.Load()
		s.events <- source.Event[*state]{Item: source.Item[*state]{Err: apierrors.NewResourceExpired("gone")}}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.received.Load() - before; got != 3 { // two deletes, and an update of o
			t.Errorf("received %d, want 3", got)
		}
		check("listed", 1, map[string]int{"1": 1, "2": 1, "3": 1})
	})
}
