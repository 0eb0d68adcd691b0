package shard

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// Group is the part of one process in a group. [Join] makes one. Its methods may be called from
// any goroutine.
type Group struct {
	o        Options
	times    lease.Times
	handler  Handler
	client   *lease.Client
	follower *lease.Follower
	clock    lease.Clock
	began    struct {
		at      time.Time
		instant lease.Instant
	}
	log      *slog.Logger
	failures lease.Failures

	changed chan struct{} // the view or the membership changed; the loop receives it
	done    chan struct{} // closed when the group was left, with err

	mu      sync.Mutex // guards the rest
	view    view
	present *membership // nil between two memberships
	state   State
	moves   Moves
	cover   cover
	err     error
}

// Join makes this process a member of the group that the options name, until ctx or the work of the
// handler ends, see [Handler].Ends. Then its entries are handed over, its calls end, and it leaves.
// A membership that is lost is followed by another one, with another term.
//
// It sends nothing before it returns. The server's refusals are in Health and the log. It is an
// error to join with the same controller.Slots twice, or before a controller or a manager has them.
func Join(ctx context.Context, config *rest.Config, handler Handler, o Options) (*Group, error) {
	g, err := newGroup(config, handler, o)
	if err != nil {
		return nil, err
	}
	go g.run(ctx) // Wait waits for it
	return g, nil
}

func newGroup(config *rest.Config, handler Handler, o Options) (*Group, error) {
	if config == nil || handler == nil {
		return nil, errors.New("shard: Join needs a rest.Config and a Handler")
	}
	g, err := newObserver(config, o, 0)
	if err != nil {
		return nil, err
	}
	g.handler = handler
	if c, ok := handler.(Claimer); ok {
		if err := c.Claim(); err != nil {
			return nil, fmt.Errorf("shard: %w", err)
		}
	}
	return g, nil
}

// newObserver returns a group without a handler, which never becomes a member. timeout is the
// timeout of a request; 0 is a fifth of the duration.
func newObserver(config *rest.Config, o Options, timeout time.Duration) (*Group, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	g := &Group{
		o: o, times: o.times(), clock: lease.NewClock(), state: Joining,
		log:     o.Logger.With("lease", o.Namespace+"/"+o.Name),
		changed: make(chan struct{}, 1), done: make(chan struct{}),
		view: view{members: map[handover.ID]*observed{}},
	}
	g.view.Put = g.putLocked
	g.start()
	g.client, err = lease.NewClient(config, o.Namespace, lease.Selection{
		Parameter: "labelSelector", Value: groupLabel + "=" + o.Name, Name: o.Name,
	}, cmp.Or(timeout, g.times.Timeout()), func() { g.follower.Restart() })
	if err != nil {
		return nil, fmt.Errorf("shard: %w", err)
	}
	g.follower = &lease.Follower{
		Client: g.client, Times: g.times, Requests: g.requests(), List: g.list, Observe: g.hear,
		Read: func(ctx context.Context) error {
			_, err := g.list(ctx)
			return err
		},
	}
	return g, nil
}

// start begins the time that now returns.
func (g *Group) start() { g.began.at, g.began.instant = time.Now(), g.clock.Now() }

func (g *Group) requests() lease.Requests {
	return lease.Requests{Failures: &g.failures, Log: g.log}
}

// Wait returns when the group was left. It returns nil if the group was left in order, and else an
// error that wraps [ErrStragglers], or why the map cannot be read.
func (g *Group) Wait() error {
	<-g.done
	return g.err
}

// label sets the labels of the goroutine in profiles, and returns a context with them.
func (g *Group) label(ctx context.Context, does string) context.Context {
	ctx = pprof.WithLabels(ctx, pprof.Labels("lease", g.o.Namespace+"/"+g.o.Name, "does", does))
	pprof.SetGoroutineLabels(ctx)
	return ctx
}

// run begins one membership after the other, until ctx or the handler's work ends.
func (g *Group) run(ctx context.Context) {
	defer close(g.done)
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { g.follower.Run(g.label(following, "follower")) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	background.Go(func() {
		select {
		case <-g.handler.Ends():
			cancel()
		case <-ctx.Done():
		}
	})
	err := g.beMember(ctx)
	cancel()
	stop()
	background.Wait()
	g.mu.Lock()
	g.state, g.err = Stopped, err
	g.mu.Unlock()
	g.handler.Left(err)
}

// beMember begins one membership after the other. It returns once ctx has ended, or with an error
// after which there is no other membership.
func (g *Group) beMember(ctx context.Context) error {
	requests := g.requests()
	name := g.newIdentity()
	for failures, lost := 0, 0; ctx.Err() == nil; {
		m, err := g.join(ctx, name)
		requests.Note(ctx, err)
		if errors.Is(err, lease.ErrNotHeld) {
			name = g.newIdentity() // others ended it before it began
		}
		if err != nil {
			failures++
			lease.Sleep(ctx, g.times.Delay(failures, err))
			continue
		}
		g.log.Info("the membership begins", "identity", m.id)
		began := time.Now()
		if err := g.serve(ctx, m); err != nil {
			return err
		}
		failures, name = 0, g.newIdentity()
		if lost++; time.Since(began) > g.o.Duration {
			lost = 1
		}
		// Each lost membership may leave a Lease that others wait for.
		lease.Sleep(ctx, g.times.LongDelay(lost, nil))
	}
	return nil
}

// newIdentity returns the name of a Lease that no membership has had.
func (g *Group) newIdentity() string {
	return fmt.Sprintf("%s.%s-%s", g.o.Name, g.o.Identity, strings.ToLower(rand.Text()[:10]))
}

// join creates a Lease with a new identity, or takes the one that an attempt without an answer has
// created. The end of ctx does not end the request, as this could leave a member that others wait
// for.
func (g *Group) join(ctx context.Context, name string) (*membership, error) {
	m := newMembership(g, handover.ID(name))
	l, send := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.o.Namespace, Name: name, Labels: map[string]string{groupLabel: g.o.Name},
	}}, g.client.Create
	g.mu.Lock()
	g.noteCoverLocked(g.now())
	if seen := g.observedLocked(m.id).lease; seen != nil {
		l, send = seen.DeepCopy(), g.client.Update
	}
	g.mu.Unlock()
	if l.ResourceVersion != "" && lease.HolderOf(l) != name {
		return nil, fmt.Errorf("the lease %s: %w", name, lease.ErrNotHeld)
	}
	if err := m.take(l); err != nil {
		return nil, err
	}
	sent, before := g.clock.Now(), g.sending(l)
	got, err := send(context.WithoutCancel(ctx), l)
	if lease.IsOutdated(err) {
		g.read(context.WithoutCancel(ctx), name) //nolint:errcheck // the next attempt shows it
	}
	if err != nil {
		return nil, err
	}
	m.term = lease.NewTerm(ctx, g.o.Namespace+"/"+name, name, g.times, g.clock, sent)
	g.wrote(got, before)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.present = m
	return m, nil
}

// serve runs one membership, until its term closes or the group is left. It returns an error if
// calls still run, or if the map has another format.
func (g *Group) serve(ctx context.Context, m *membership) error {
	g.handler.Begin(&Term{m.term})
	renewing, stop := context.WithCancel(m.term.Context())
	var background sync.WaitGroup
	background.Go(func() {
		requests := g.requests()
		g.holder(m).Renew(g.label(renewing, "renewer"), m.term, &requests, m.soon, m.take)
	})
	g.loop(ctx, m)
	lost := m.term.Err()
	if lost != nil {
		g.log.Error("the membership is lost", "error", lost)
	}
	err := m.endAll()
	stop()
	background.Wait()
	m.running.Wait()
	if err == nil {
		m.term.End(errLeft)
		g.release(ctx, m)
	}
	m.term.End(ErrStragglers)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.present, g.state = nil, Joining
	switch {
	case err != nil:
		return fmt.Errorf("shard: %w %v after the begin of the end: the lease %s/%s is not released: %w",
			ErrStragglers, g.o.Grace, g.o.Namespace, m.id, err)
	case errors.Is(lost, handover.ErrFormat):
		return fmt.Errorf("shard: %w", lost)
	}
	return nil
}

// holder returns the Holder of the member's own Lease.
func (g *Group) holder(m *membership) *lease.Holder {
	var before sending
	return &lease.Holder{
		Client: g.client, Times: g.times, Clock: g.clock,
		Observed: func(string) (*coordinationv1.Lease, bool) {
			g.mu.Lock()
			defer g.mu.Unlock()
			l := g.observedLocked(m.id).lease
			if lease.HolderOf(l) != string(m.id) {
				return nil, false
			}
			before = sending{l.ResourceVersion, g.view.Newest()}
			return l.DeepCopy(), true
		},
		Observe: func(l *coordinationv1.Lease) { g.wrote(l, before) },
		Read:    func(ctx context.Context) error { return g.read(ctx, string(m.id)) },
	}
}

// release writes that the member has ended, so that others need not wait. It tries for a third of
// the duration.
func (g *Group) release(ctx context.Context, m *membership) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.o.Duration/3)
	defer cancel()
	g.releaseMap(ctx, m)
	requests := g.requests()
	for failures := 1; ; failures++ {
		_, err := g.holder(m).Swap(ctx, string(m.id), func(l *coordinationv1.Lease) error {
			lease.Release(l)
			return nil
		})
		if err == nil || errors.Is(err, lease.ErrNotHeld) {
			return
		}
		requests.Note(ctx, err)
		if !lease.Sleep(ctx, g.times.Delay(failures, err)) {
			g.log.Warn("the membership is not released: others wait for its duration", "error", err)
			return
		}
	}
}

// releaseMap releases the map's Lease if no other member lives, so that an election may have it.
func (g *Group) releaseMap(ctx context.Context, m *membership) {
	g.mu.Lock()
	table := g.view.table
	for id, s := range g.view.members {
		if id != m.id && !s.Ended {
			table = nil
		}
	}
	g.mu.Unlock()
	if table == nil {
		return
	}
	l := table.DeepCopy()
	lease.Release(l)
	requests := g.requests()
	requests.Note(ctx, g.swap(ctx, l))
}
