package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/engine/reflector"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// oneObject is a source with an object in its namespace, whose state is "A1". The first
// letter of a state is the UID. counted runs when the source returns its counters.
type oneObject struct {
	namespace string
	counted   func()
}

func (s oneObject) List(context.Context, source.ListOptions) (source.Page[string], error) {
	object := source.Item[string]{Key: Prefix(s.namespace) + "o", Version: "5", Object: "A1"}
	return source.Page[string]{Version: "5", Items: []source.Item[string]{object}}, nil
}

func (s oneObject) Watch(
	ctx context.Context, _ source.WatchOptions,
) (source.Stream[string], error) {
	return idle{ctx}, nil
}

func (s oneObject) DecodingStats() source.DecodingStats {
	s.counted()
	return source.DecodingStats{Shared: 1}
}

func (oneObject) BytesReceived() uint64 { return 10 }

type idle struct{ ctx context.Context }

func (idle) Close() error { return nil }

func (s idle) Next() ([]source.Event[string], error) {
	<-s.ctx.Done()
	return nil, s.ctx.Err()
}

// optionsOf returns the options of a collection of these namespaces.
func optionsOf(namespaces ...string) Options[string] {
	return Options[string]{
		Name: "objects", Namespaces: namespaces,
		Describe: func(state string) (version, uid string) { return "5", state[:1] },
		Part: func(_ context.Context, namespace string, _ source.Scope) Part[string] {
			return Part[string]{Source: oneObject{namespace, func() {}},
				Reflector: reflector.Options[string]{Transport: source.Transport{NoStreamedLists: true}}}
		},
	}
}

// run runs a collection until stop is called, which returns the error of Run.
func run(t *testing.T, o Options[string]) (c *Collection[string], stop func() error) {
	t.Helper()
	c, err := New(o)
	if err != nil {
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
	return c, func() error {
		cancel()
		return <-done
	}
}

func TestOptionsAreRefused(t *testing.T) {
	o := optionsOf()
	o.Indexes = map[any]store.IndexFunc[string]{"none": nil}
	if _, err := New(o); !errors.Is(err, store.ErrIndexFunc) {
		t.Errorf("with an index without a function: %v", err)
	}
	if _, err := New(optionsOf("a", "a")); err == nil {
		t.Error("a namespace was given twice")
	}
	c, err := New(optionsOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddNamespace("a/b"); err == nil || len(c.Namespaces()) != 1 {
		t.Errorf("the namespaces are %q, error %v", c.Namespaces(), err)
	}
	receive := func(change.Change[string]) {}
	if _, err := c.Subscribe(receive, false, fanout.SubscriptionOptions{Limit: -1}); err == nil {
		t.Error("a handler has the limit -1")
	}
}

func TestEndBeforeTheRun(t *testing.T) {
	c, err := New(optionsOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Settled() {
		t.Error("a new collection is settled")
	}
	c.End(true)
	c.End(false)
	if err := c.Over(); err != ErrReleased || !c.Settled() {
		t.Errorf("after its release it is over with %v; settled: %v", err, c.Settled())
	}
	if err := c.AddNamespace("b"); err != ErrReleased {
		t.Errorf("AddNamespace: %v", err)
	}
	receive := func(change.Change[string]) {}
	if _, err := c.Subscribe(receive, false, fanout.SubscriptionOptions{}); err != ErrStopped {
		t.Errorf("Subscribe: %v", err)
	}
}

// TestSettledWhenTheLastHandlerReturns stops a collection whose only handler is stuck.
func TestSettledWhenTheLastHandlerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := run(t, optionsOf())
		release := make(chan struct{})
		_, err := c.Subscribe(func(change.Change[string]) { <-release }, false, fanout.SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := stop(); !errors.Is(err, ErrHandlersStuck) || c.Settled() {
			t.Errorf("Run: %v; settled: %v", err, c.Settled())
		}
		close(release)
		synctest.Wait()
		if !c.Settled() {
			t.Error("it is not settled when its handler has returned")
		}
	})
}

// TestRemoveNamespaceDuringTheStop stops the collection while the counters of the removed
// part are read.
func TestRemoveNamespaceDuringTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pause := make(chan struct{})
		o, counted := optionsOf("a", "b", "c"), func() {}
		part := o.Part
		o.Part = func(ctx context.Context, namespace string, scope source.Scope) Part[string] {
			p := part(ctx, namespace, scope)
			p.Source = oneObject{namespace, func() { counted() }}
			return p
		}
		c, stop := run(t, o)
		if err := c.RemoveNamespace("c"); err != nil {
			t.Fatal(err)
		}
		if n := c.Health().Decoding.Shared; n != 3 {
			t.Errorf("after the removal of one of three parts, %d objects were shared", n)
		}
		if h := c.Health(); h.Bytes != 30 || h.Namespaces["a"].Bytes != 10 {
			t.Errorf("%d bytes were received, %d of them of a", h.Bytes, h.Namespaces["a"].Bytes)
		}
		counted = func() { <-pause }
		removed := make(chan error)
		go func() { removed <- c.RemoveNamespace("b") }()
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		close(pause)
		if err := <-removed; err != ErrStopped {
			t.Errorf("RemoveNamespace: %v", err)
		}
	})
}

func TestHandlersThatAreDueTogetherAreResynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := optionsOf()
		var c *Collection[string]
		o.Observe = func([]change.Change[string]) {
			if c != nil && c.InSync() && !c.HasSynced() {
				t.Error("it is in sync before Synced is closed")
			}
		}
		var err error
		if c, err = New(o); err != nil {
			t.Fatal(err)
		}
		var resynced [3]int
		for n := range resynced {
			_, err := c.Subscribe(func(d change.Change[string]) {
				if d.Resync {
					resynced[n]++
				}
			}, false, fanout.SubscriptionOptions{ResyncPeriod: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
		}
		term, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		ctx, err := c.Claim(term)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if resynced != [3]int{2, 2, 2} {
			t.Errorf("in two periods the handlers were resynced %v times", resynced)
		}
	})
}

// TestIncarnationsAreToldApart folds updates of two objects of one name.
func TestIncarnationsAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(optionsOf())
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		_, err = c.Subscribe(func(d change.Change[string]) { told = append(told, d.Old+d.New) }, true,
			fanout.SubscriptionOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		states := []string{"A1", "A2", "A3", "B1", "B2", "B3"}
		for n, state := range states[1:] {
			c.log.Publish([]change.Change[string]{
				{Key: "o", Type: change.Updated, Old: states[n], New: state},
			}, 1)
		}
		c.log.Start()
		synctest.Wait()
		if !slices.Contains(told, "A3B1") {
			t.Errorf("the handler received %q, without the change of the UID", told)
		}
		c.End(false)
	})
}

// pending is a subscription whose notifications wait.
type pending struct{ Subscription }

func (pending) Name() string          { return "h" }
func (pending) Done() <-chan struct{} { return nil }
func (pending) HasSynced() bool       { return true }
func (pending) Stats() fanout.Stats   { return fanout.Stats{Pending: 1, LeftOut: 2} }

func TestHealthOfAHandler(t *testing.T) {
	want := health.Handler{Name: "h", State: health.HandlerBusy, Synced: true, Pending: 1, LeftOut: 2}
	if got := HandlerHealth(pending{}); got != want {
		t.Errorf("the health is %+v, want %+v", got, want)
	}
}

// TestBatchesAreTimed: the duration of a batch is that of applying it, without the wait for it.
func TestBatchesAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := optionsOf("a")
		o.Observe = func([]change.Change[string]) { time.Sleep(3 * time.Second) }
		c, stop := run(t, o)
		if n := c.Health().Queued; n != 1 {
			t.Errorf("while one change is applied, %d wait", n)
		}
		time.Sleep(time.Hour)
		batches := c.Health().Batches
		if batches.Count() != 1 || batches.Sum != 3*time.Second {
			t.Errorf("one batch of 3s is counted as %+v", batches)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
