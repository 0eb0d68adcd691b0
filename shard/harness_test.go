package shard

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/lease/leasetest"
)

func TestMain(m *testing.M) { leasetest.Main(m) }

const duration = lease.DefaultDuration

var leaseResource = leasetest.Resource

// by matches the requests of a process for Leases.
func by(name, verb string) apisim.Match { return leasetest.By(name, verb) }

// span is a time in which a process calls for a slot.
type span struct {
	slot       int
	process    string
	epoch      uint64
	begin, end time.Time // end is zero while it calls
	versions   map[string]string
}

// world is a server with the namespace of the Leases, and the record of the calls of all
// processes.
type world struct {
	*testing.T
	server *apisim.Server
	// restored reports whether there were several maps, whose epochs begin again.
	restored bool

	mu    sync.Mutex // guards spans
	spans []*span
}

// process is a Group that runs in a test, with a handler that records its calls.
type process struct {
	*Group
	w         *world
	name      string
	stop      context.CancelFunc
	warmFor   time.Duration
	drainFor  time.Duration // the time for which calls run on
	neverWarm bool
	warmErr   error // what Warm returns; nil once it succeeds
	unready   bool  // it reports no slot in order
	boot      func() time.Duration
	logger    *slog.Logger
	leads     []string // the controllers that it can lead
	// unprepared is a controller that it cannot prepare.
	unprepared string

	mu      sync.Mutex // guards the rest
	warms   int        // the calls of Warm
	term    *Term
	terms   []*Term
	calls   map[int]*span
	warm    Set
	dropped Set
	// undrained are the slots whose drain was given up.
	undrained Set
	late      Set // slots that it reports not in order
	loads     [Count]float64
}

func newWorld(t *testing.T, o apisim.Options) *world {
	t.Helper()
	return &world{T: t, server: leasetest.Start(t, o)}
}

// bubble runs a test in a bubble with a world, and checks its spans at the end.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, apisim.Options{})
		test(w)
		w.check()
	})
}

// start runs a process until stop, or the end of the test.
func (w *world) start(name, generation string, change ...func(*process)) *process {
	w.Helper()
	p := &process{w: w, name: name, warmFor: 50 * time.Millisecond, calls: map[int]*span{},
		logger: slog.New(slog.DiscardHandler),
		boot:   func() time.Duration { return 0 }} // Go's clock is virtual
	for _, f := range change {
		f(p)
	}
	g, err := newGroup(leasetest.Config(w.server, name), p, Options{
		Namespace: "ops", Name: "rollout", Identity: name, Generation: generation,
		Logger: p.logger,
	})
	if err != nil {
		w.Fatal(err)
	}
	p.Group = g
	g.clock = lease.Clock{Boot: p.boot}
	ctx, stop := context.WithCancel(w.Context())
	p.stop = stop
	go g.run(ctx)
	w.Cleanup(func() {
		stop()
		<-g.done
	})
	return p
}

// leave stops a process in order.
func (p *process) leave() {
	p.stop()
	if err := p.Wait(); err != nil {
		p.w.Errorf("%s: %v", p.name, err)
	}
}

func (p *process) Begin(given controller.Term) {
	t := given.(*Term)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.warm.IsEmpty() || len(p.calls) > 0 {
		p.w.Errorf("%s begins a membership with %v warm and %d calls", p.name, p.warm, len(p.calls))
	}
	p.term, p.terms = t, append(p.terms, t)
	t.AfterFunc(func() { // the guard refuses writes from now on
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.term == t {
			p.endLocked(allSlots())
		}
	})
}

func allSlots() (s Set) {
	for i := range Count {
		s.Add(i)
	}
	return s
}

func (p *process) Warm(ctx context.Context, slots Set) error {
	p.mu.Lock()
	neverWarm := p.neverWarm
	p.mu.Unlock()
	if neverWarm {
		<-ctx.Done()
	}
	if !lease.Sleep(ctx, p.warmFor) {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warms++; p.warmErr != nil {
		return p.warmErr
	}
	p.warm = p.warm.Union(slots)
	return nil
}

func (p *process) Serve(slots []Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range slots {
		if c := p.calls[s.Number]; c != nil && c.epoch == s.Epoch && p.undrained.Has(s.Number) {
			p.undrained.Remove(s.Number)
			continue // it goes on
		}
		if !p.warm.Has(s.Number) || p.calls[s.Number] != nil {
			p.w.Errorf("%s is to serve slot %d, warm: %t, calls: %v", p.name, s.Number,
				p.warm.Has(s.Number), p.calls[s.Number])
		}
		if p.term.Err() != nil {
			continue
		}
		c := &span{slot: s.Number, process: p.name, epoch: s.Epoch, begin: time.Now(), versions: s.Versions}
		p.calls[s.Number] = c
		p.w.mu.Lock()
		p.w.spans = append(p.w.spans, c)
		p.w.mu.Unlock()
	}
}

func (p *process) Drain(ctx context.Context, slots Set) (map[string]string, error) {
	p.mu.Lock()
	drainFor, term := p.drainFor, p.term
	p.mu.Unlock()
	inTime := lease.Sleep(ctx, drainFor)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !inTime && term.Err() == nil {
		p.undrained = p.undrained.Union(slots)
		return nil, context.Cause(ctx)
	}
	p.endLocked(slots)
	return map[string]string{"pods": p.name}, nil
}

// endLocked ends the calls for slots.
func (p *process) endLocked(slots Set) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	for i := range slots.Slots() {
		if c := p.calls[i]; c != nil {
			c.end = time.Now()
			delete(p.calls, i)
		}
	}
}

func (p *process) Drop(slots Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range slots.Slots() {
		if p.calls[i] != nil {
			p.w.Errorf("%s drops slot %d, for which it calls", p.name, i)
		}
	}
	p.warm, p.dropped = p.warm.Minus(slots), p.dropped.Union(slots)
}

func (p *process) Report() (Set, [Count]float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unready {
		return Set{}, p.loads
	}
	return p.warm.Minus(p.late), p.loads
}

// set changes a process that runs.
func (p *process) set(change func(*process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// Controllers reports all controllers of leads as led. Only the entries of slots are checked.
func (p *process) Controllers() map[string]bool {
	led := map[string]bool{}
	for _, name := range p.leads {
		led[name] = true
	}
	return led
}

func (p *process) Prepare(ctx context.Context, name string) error {
	if name == p.unprepared {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}

func (p *process) Lead(string, map[string]string) {}

func (p *process) Resign(context.Context, string) (map[string]string, error) { return nil, nil }

// serves returns the number of slots for which a process calls.
func (p *process) serves() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// of returns the spans of a slot, in order.
func (w *world) of(slot int) (spans []span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.spans {
		if s.slot == slot {
			spans = append(spans, *s)
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.begin.Compare(b.begin) })
	return spans
}

// check checks that no two processes called for a slot at a time, and that epochs rose.
func (w *world) check() {
	w.Helper()
	for slot := range Count {
		spans := w.of(slot)
		for i, s := range spans[min(1, len(spans)):] {
			before := spans[i]
			if before.end.IsZero() || s.begin.Before(before.end) {
				w.Fatalf("slot %d: %s called from %v to %v, and %s from %v", slot, before.process,
					before.begin, before.end, s.process, s.begin)
			}
			if !w.restored && (s.epoch < before.epoch || s.epoch == before.epoch && s.process != before.process) {
				w.Fatalf("slot %d: %s has epoch %d after %d of %s", slot, s.process, s.epoch, before.epoch,
					before.process)
			}
		}
	}
}

// longestGap returns the longest time since a point in time in which no process called for a
// slot.
func (w *world) longestGap(since time.Time) (longest time.Duration) {
	for slot := range Count {
		last := since
		for _, s := range w.of(slot) {
			if !s.end.IsZero() && s.end.Before(since) {
				continue
			}
			longest = max(longest, s.begin.Sub(last))
			if last = s.end; s.end.IsZero() {
				last = time.Now()
			}
		}
		longest = max(longest, time.Since(last))
	}
	return longest
}

// covered waits until processes call for all slots, and returns the time until then.
func (w *world) covered(processes ...*process) time.Duration {
	w.Helper()
	began := time.Now()
	for range 2000 {
		synctest.Wait()
		n := 0
		for _, p := range processes {
			n += p.serves()
		}
		if n == Count {
			return time.Since(began)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, p := range processes {
		w.Logf("%s: %+v", p.name, p.Health())
	}
	w.Fatal("not all slots are called for after minutes")
	return 0
}

// moved returns the number of times that each slot has changed its process since a point in time.
func (w *world) moved(since time.Time) (moves [Count]int) {
	for slot := range Count {
		for _, s := range w.of(slot) {
			if s.begin.After(since) {
				moves[slot]++
			}
		}
	}
	return moves
}

func (w *world) wantBetween(name string, got, least, most time.Duration) {
	w.Helper()
	leasetest.WantBetween(w.T, name, got, least, most)
}
