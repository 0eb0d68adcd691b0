package election

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
)

func TestMain(m *testing.M) { leasetest.Main(m) }

// errLead is an error that lead returns.
var errLead = errors.New("lead failed")

const duration = lease.DefaultDuration

var leaseResource = leasetest.Resource

// by matches the requests of a candidate for the Lease.
func by(name, verb string) apisim.Match { return leasetest.By(name, verb) }

// span is the time of a term on its holder's clock.
type span struct {
	holder     string
	begin, end time.Time // end is zero while the term is open
	closed     error
}

// candidate is an Elector that runs in a test, with the terms that it has had.
type candidate struct {
	*Elector
	stop context.CancelFunc
	done chan struct{} // closed when Run has returned err
	err  error

	mu    sync.Mutex // guards the rest
	terms []*Term
	spans []*span
}

// world is a server with the namespace of the Lease.
type world struct {
	*testing.T
	server *apisim.Server
}

func newWorld(t *testing.T, o apisim.Options) *world {
	t.Helper()
	return &world{t, leasetest.Start(t, o)}
}

// options returns the options of a candidate that logs nothing.
func options(name string) Options {
	return Options{
		Namespace: "ops", Name: "rollout", Identity: name, Logger: slog.New(slog.DiscardHandler),
	}
}

// elector returns a candidate that does not run.
func (w *world) elector(o Options) *candidate {
	w.Helper()
	e, err := New(leasetest.Config(w.server, o.Identity), o)
	if err != nil {
		w.Fatal(err)
	}
	e.clock = lease.Clock{Boot: func() time.Duration { return 0 }} // the other one is virtual
	return &candidate{Elector: e, done: make(chan struct{})}
}

// start runs a candidate until stop, or the end of the test. Its lead waits for the end of its
// context, and then for as long as drain.
func (w *world) start(o Options, drain time.Duration) *candidate {
	w.Helper()
	c := w.elector(o)
	w.run(c, func(ctx context.Context, t *Term) error {
		c.note(t)
		<-ctx.Done()
		time.Sleep(drain)
		return context.Cause(ctx)
	})
	return c
}

func (w *world) run(c *candidate, lead Lead) {
	ctx, stop := context.WithCancel(w.Context())
	c.stop = stop
	go func() {
		defer close(c.done)
		c.err = c.Run(ctx, lead)
	}()
	w.Cleanup(func() {
		stop()
		<-c.done
	})
}

// note records a term and the time of its end.
func (c *candidate) note(t *Term) {
	s := &span{holder: t.Identity(), begin: time.Now()}
	c.mu.Lock()
	c.terms, c.spans = append(c.terms, t), append(c.spans, s)
	c.mu.Unlock()
	go func() {
		<-t.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		s.end, s.closed = time.Now(), t.Err()
	}()
}

// term returns the n-th term, 0 being the first, once it has begun.
func (w *world) term(c *candidate, n int) (*Term, *span) {
	w.Helper()
	for range 600 {
		synctest.Wait()
		c.mu.Lock()
		if len(c.terms) > n {
			defer c.mu.Unlock()
			return c.terms[n], c.spans[n]
		}
		c.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
	}
	w.Fatalf("%s has no term %d after a minute: %+v", c.o.Identity, n, c.Health())
	return nil, nil
}

// lease returns the stored Lease.
func (w *world) lease() *coordinationv1.Lease {
	w.Helper()
	return leasetest.Get(w.T, w.server, "rollout")
}

// change writes the Lease past all candidates.
func (w *world) change(change func(*coordinationv1.Lease)) {
	w.Helper()
	leasetest.Change(w.T, w.server, "rollout", change)
}

func (w *world) wantErr(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("the error is %v, want %v", err, want)
	}
}

// wantBetween checks a duration.
func (w *world) wantBetween(name string, got, least, most time.Duration) {
	w.Helper()
	leasetest.WantBetween(w.T, name, got, least, most)
}

// bubble runs a test in a bubble with a world.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t, apisim.Options{})) })
}
