package election

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// Elector is a candidate for the terms of one Lease. Use [New]. Its methods may be called from any
// goroutine.
type Elector struct {
	o        Options
	times    lease.Times
	client   *lease.Client
	clock    lease.Clock
	follower *lease.Follower
	log      *slog.Logger

	changed chan struct{} // the view changed; the campaign receives it
	renamed chan struct{} // the Lease has another holder; callOnNewLeader receives it

	grace    atomic.Int64 // Options.Grace, or that of SetGrace
	failures lease.Failures
	writes   lease.Requests // of the goroutines that hold the Lease, one after another

	mu     sync.Mutex // guards the rest
	view   view
	seen   bool  // Run has observed the Lease
	proven bool  // the server lets this program write the Lease
	state  State // see Health
	term   *Term // the present term, or nil
	// identity is the identity of the present term, or for the next one; previous is that of the
	// last term. No other identity of this elector can be in the Lease.
	identity, previous string
}

// New returns a candidate for a Lease of the server that config names. It sends nothing.
func New(config *rest.Config, o Options) (*Elector, error) {
	if config == nil {
		return nil, errors.New("election: the rest.Config is nil: " +
			"load one with clientcmd or rest.InClusterConfig")
	}
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	e := &Elector{
		o: o, times: o.times(), clock: lease.NewClock(),
		log:     o.Logger.With("lease", o.Namespace+"/"+o.Name),
		changed: make(chan struct{}, 1), renamed: make(chan struct{}, 1), state: Stopped,
	}
	e.view.Put = e.put
	// The selection is one Lease, so that a Role can name it.
	e.client, err = lease.NewClient(config, o.Namespace, lease.Selection{
		Parameter: "fieldSelector", Value: "metadata.name=" + o.Name, Name: o.Name,
	}, e.times.Timeout(), func() { e.follower.Restart() })
	if err != nil {
		return nil, fmt.Errorf("election: %w", err)
	}
	e.writes = lease.Requests{Failures: &e.failures, Log: e.log}
	e.follower = &lease.Follower{
		Client: e.client, Times: e.times, Requests: e.writes, List: e.list, Read: e.read,
		Observe: e.observe,
	}
	e.identity = e.newIdentity()
	e.SetGrace(o.Grace)
	return e, nil
}

// Run waits for the Lease, calls lead for each term, and returns when ctx ends: after lead has
// returned and the Lease is released. Renewals go on until lead returns. After a lost term it waits
// for the next one.
//
// It returns at once if the server does not let the program hold the Lease. It releases the Lease
// and returns when lead returns during an open term. An error of lead ends Run, unless it wraps
// context.Canceled or the term's error. If lead does not return within Options.Grace, Run returns
// [ErrStragglers] and releases nothing: the caller names the calls that still run, or exits.
func (e *Elector) Run(ctx context.Context, lead Lead) error {
	if err := e.begin(); err != nil {
		return err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	defer e.enter(Stopped)
	defer background.Wait()
	defer stop()
	if err := e.checkAccess(ctx); err != nil {
		return fmt.Errorf("election: %w", err)
	}
	background.Go(func() { e.follower.Run(e.label(following, "follower")) })
	go e.callOnNewLeader(e.label(following, "observer")) // a call that blocks must not hold up the end
	for {
		t, err := e.campaign(ctx)
		if ctx.Err() != nil && t == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("election: %w", err)
		}
		if again, err := e.serve(ctx, t, lead); !again {
			return err
		}
		lease.Sleep(ctx, e.times.Delay(lease.MaxFailures, nil)) // if others keep deleting the Lease
	}
}

// label sets the labels of the goroutine in profiles, and returns a context with them.
func (e *Elector) label(ctx context.Context, does string) context.Context {
	ctx = pprof.WithLabels(ctx, pprof.Labels("lease", e.o.Namespace+"/"+e.o.Name, "does", does))
	pprof.SetGoroutineLabels(ctx)
	return ctx
}

// SetGrace replaces Options.Grace, for who learns later how long lead may take.
func (e *Elector) SetGrace(grace time.Duration) { e.grace.Store(int64(grace)) }

func (e *Elector) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != Stopped {
		return errors.New("election: Run is running: one Elector is one candidate")
	}
	e.state = Standby
	e.seen, e.proven = false, false
	return nil
}

// newIdentity returns an identity that no term has had.
func (e *Elector) newIdentity() string { return e.o.Identity + "_" + rand.Text()[:12] }

// checkAccess returns an error if the server does not let the program hold the Lease. It changes
// nothing. A server that cannot be reached is no error.
func (e *Elector) checkAccess(ctx context.Context) error {
	stored, err := e.client.Get(ctx, e.o.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil // the create will show it
	case err != nil && lease.NeedsUser("get", err):
		return err
	case err != nil:
		e.writes.Note(ctx, err)
		return nil
	case stored.Spec.Strategy != nil:
		return fmt.Errorf("the lease %s/%s has the strategy %s, so the server chooses its holder: "+
			"coordinated elections are not supported, give another name", e.o.Namespace, e.o.Name,
			*stored.Spec.Strategy)
	}
	err = e.client.TryUpdate(ctx, stored)
	if err != nil && lease.NeedsUser("update", err) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proven = err == nil || lease.IsOutdated(err)
	return nil
}

func (e *Elector) callOnNewLeader(ctx context.Context) {
	for last, called := "", false; ; {
		select {
		case <-ctx.Done():
			return
		case <-e.renamed:
		}
		e.mu.Lock()
		holder := lease.HolderOf(e.view.lease)
		e.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if e.o.OnNewLeader != nil && (!called || holder != last) {
			e.tell(holder)
		}
		last, called = holder, true
	}
}

// tell calls OnNewLeader. A panic of it is logged: it has nothing to do with the term.
func (e *Elector) tell(holder string) {
	defer func() {
		if value := recover(); value != nil {
			e.log.Error("OnNewLeader panicked", "holder", holder, "panic", fmt.Sprint(value),
				"stack", string(debug.Stack()))
		}
	}()
	e.o.OnNewLeader(holder)
}
