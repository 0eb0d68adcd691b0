package shard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
)

func TestMain(m *testing.M) { leasetest.Main(m) }

var _ guard.Term = (*Term)(nil)

const duration = lease.DefaultDuration

// takeOverBound is the longest time from the crash of a member until another one has its entries, as
// shard/TABLES.md states it. Caches are filled after it.
const takeOverBound = duration + 2*time.Second

// forever is the duration of a call that hangs.
const forever = 1000 * time.Hour

// process is a Group that runs in a test, with a handler that records its calls. In the model all
// entries that it serves are called all the time, by calls that take no time.
type process struct {
	*Group
	w       *world
	name    string
	options Options
	boot    func() time.Duration
	stop    context.CancelFunc
	ends    chan struct{}

	mu sync.Mutex // guards the rest
	// warmFor is the time of a list, of which a page comes each second. neverWarm lists have no
	// page and no end. warmErr is the error of lists, nil once they succeed.
	warmFor   time.Duration
	neverWarm bool
	warmErr   error
	// unlistable has the entries with which a list fails.
	unlistable Set
	// drainFor is the time for which a call runs on that was made right before Shut. ignores
	// reports whether calls run on after the end of their contexts.
	drainFor time.Duration
	ignores  bool
	// unknown reports whether the caches do not show the writes of calls.
	unknown bool
	// neverReaches reports whether caches stay behind the versions of Serve.
	neverReaches bool
	leads        []string // the controllers that it can lead as a whole
	// work has Lacks, Late, Hung, Blocked and Reasons; unready and unstarted reports that no
	// entry is ready, and that the controllers do not run.
	work               Work
	unready, unstarted bool

	warms, pages int // the calls of Warm that have ended, and the pages of lists
	term         *Term
	terms        []*Term
	served       map[int]*served
	warm         Set
	dropped      Set
	aborted      Set
	unserved     Set // entries whose calls were asked for without Serve
	asked        int // the calls of Calls
	left         []error
	// longestShut is the longest time for which an entry was shut and then opened again.
	longestShut time.Duration
}

// served is an entry that a process serves.
type served struct {
	Owned
	span   *span // nil while nothing is called
	opened bool
	shut   time.Time // zero: it is open
	// oldest and until are the begin and the end of the calls that run.
	oldest, until time.Time
}

// start runs a process until stop, or the end of the test.
func (w *world) start(name, generation string, change ...func(*process)) *process {
	w.Helper()
	p := &process{
		w: w, name: name, warmFor: 50 * time.Millisecond, served: map[int]*served{},
		ends: make(chan struct{}),
		boot: func() time.Duration { return 0 }, // Go's clock is virtual
		options: Options{
			Namespace: "ops", Name: "rollout", Identity: name, Generation: generation,
			Logger: slog.New(slog.DiscardHandler),
		},
	}
	for _, f := range change {
		f(p)
	}
	w.list(p.leads)
	g, err := newGroup(leasetest.Config(w.server, name), p, p.options)
	if err != nil {
		w.Fatal(err)
	}
	p.Group = g
	g.clock = lease.Clock{Boot: p.boot}
	g.start()
	ctx, stop := context.WithCancel(w.Context())
	p.stop = stop
	go g.run(ctx)
	w.Cleanup(func() {
		stop()
		<-g.done
	})
	return p
}

// set changes a process that runs.
func (p *process) set(change func(*process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// leave stops a process in order.
func (p *process) leave() {
	p.stop()
	if err := p.Wait(); err != nil {
		p.w.Errorf("%s: %v", p.name, err)
	}
}

// crash cuts a process off, for ever.
func (p *process) crash() { p.w.server.Inject(by(p.name, ""), dropped) }

// call makes calls of a duration for entries that the process serves.
func (p *process) call(entries Set, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range entries.Slots() {
		if s := p.served[i]; s != nil {
			p.callLocked(i, s, d)
		}
	}
}

func (p *process) callLocked(i int, s *served, d time.Duration) {
	now := time.Now()
	if !now.Before(s.until) {
		s.oldest = now
	}
	if until := now.Add(d); until.After(s.until) {
		s.until = until
	}
	time.AfterFunc(s.until.Sub(now), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.settleLocked(i, s)
	})
}

// settleLocked ends the span of an entry that is shut, once no call runs.
func (p *process) settleLocked(i int, s *served) {
	if p.served[i] == s && !s.shut.IsZero() && !time.Now().Before(s.until) {
		p.w.end(s.span)
		s.span = nil
	}
}

// openLocked begins calls for an entry that is not shut.
func (p *process) openLocked(i int, s *served) {
	isOpen := s.span != nil || !s.shut.IsZero() || p.term.Err() != nil
	if isOpen || !s.opened && p.neverReaches {
		return
	}
	s.opened = true
	s.span = p.w.begin(p, i, s.Owned)
}

// Begin implements Handler.
func (p *process) Begin(given guard.Term) {
	t := given.(*Term)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.warm.IsEmpty() || len(p.served) > 0 {
		p.w.Errorf("%s begins a membership with %v warm and %d served", p.name, p.warm, len(p.served))
	}
	p.term, p.terms = t, append(p.terms, t)
	t.AfterFunc(func() { // the guard refuses writes from now on
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.term != t {
			return
		}
		for _, s := range p.served {
			p.w.end(s.span)
			s.span = nil
		}
	})
}

// Warm implements Handler.
func (p *process) Warm(ctx context.Context, entries Set) error {
	p.mu.Lock()
	left := p.warmFor
	for p.neverWarm {
		p.mu.Unlock()
		if !lease.Sleep(ctx, time.Second) {
			return context.Cause(ctx)
		}
		p.mu.Lock()
	}
	p.mu.Unlock()
	for left > 0 {
		step := min(left, time.Second)
		if !lease.Sleep(ctx, step) {
			break
		}
		left -= step
		p.set(func(p *process) { p.pages++ })
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warms++; p.warmErr != nil {
		return p.warmErr
	}
	if !entries.And(p.unlistable).IsEmpty() {
		return errForbidden
	}
	p.warm = p.warm.Union(entries)
	return nil
}

// Serve implements Handler.
func (p *process) Serve(entries []Owned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range entries {
		if o.Number < 0 || !p.warm.Has(o.Number) || p.served[o.Number] != nil {
			p.w.Errorf("%s is to serve entry %d: %v are warm, served before: %t", p.name, o.Number, p.warm,
				p.served[o.Number] != nil)
			continue
		}
		s := &served{Owned: o}
		p.served[o.Number] = s
		p.openLocked(o.Number, s)
	}
}

// Shut implements Handler.
func (p *process) Shut(entries Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range entries.Slots() {
		s := p.served[i]
		if s == nil || !s.shut.IsZero() {
			continue
		}
		s.shut = time.Now()
		if p.drainFor > 0 && s.opened {
			p.callLocked(i, s, p.drainFor)
		}
		p.settleLocked(i, s)
	}
}

// Unshut implements Handler.
func (p *process) Unshut(entries Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range entries.Slots() {
		s := p.served[i]
		if s == nil || s.shut.IsZero() {
			p.w.Errorf("%s is to open entry %d again, served: %t", p.name, i, s != nil)
			continue
		}
		p.longestShut = max(p.longestShut, time.Since(s.shut))
		s.shut = time.Time{}
		p.openLocked(i, s)
	}
}

// Calls implements Handler.
func (p *process) Calls(entry int) (c Calls) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.served[entry]
	p.asked++
	if s == nil {
		p.unserved.Add(entry)
		return c
	}
	p.settleLocked(entry, s)
	c = Calls{Opened: s.opened, Known: !p.unknown}
	if s.opened && !p.unknown {
		c.Versions = map[string]string{"pods": p.name}
	}
	if time.Now().Before(s.until) {
		c.Running, c.Oldest = 1, s.oldest
	}
	return c
}

// Abort implements Handler.
func (p *process) Abort(entries Set, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cause == nil {
		p.w.Errorf("%s ends contexts without a cause", p.name)
	}
	p.aborted = p.aborted.Union(entries)
	for i := range entries.Slots() {
		if s := p.served[i]; s != nil && !p.ignores {
			s.until = time.Time{}
			p.settleLocked(i, s)
		}
	}
}

// Drop implements Handler.
func (p *process) Drop(entries Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range entries.Slots() {
		s := p.served[i]
		if s != nil && s.span != nil {
			if p.term.Err() == nil {
				p.w.Errorf("%s drops entry %d, for which it calls", p.name, i)
			}
			p.w.end(s.span)
		}
		delete(p.served, i)
	}
	p.warm, p.dropped = p.warm.Minus(entries), p.dropped.Union(entries)
}

// Work implements Handler.
func (p *process) Work() Work {
	p.mu.Lock()
	defer p.mu.Unlock()
	work := p.work
	work.Started, work.Pages, work.Controllers = !p.unstarted, uint64(p.pages), slices.Clone(p.leads)
	for i, s := range p.served {
		if p.openLocked(i, s); s.opened && !p.unready {
			work.Ready.Add(i)
			work.Objects[i] = p.w.objectsOf(i)
		}
	}
	work.Late = work.Late.And(work.Ready)
	return work
}

// Ends implements Handler.
func (p *process) Ends() <-chan struct{} { return p.ends }

// Left implements Handler.
func (p *process) Left(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, err)
}

// serves returns the number of slots for which a process calls.
func (p *process) serves() int { return p.calls().Len() }

// calls returns the slots for which a process calls.
func (p *process) calls() (s Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range p.served {
		if i < Count && e.span != nil {
			s.Add(i)
		}
	}
	return s
}

// leadsNow returns the controllers for which a process calls.
func (p *process) leadsNow() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range p.served {
		if i >= Count && e.span != nil {
			names = append(names, p.leads[i-Count])
		}
	}
	slices.Sort(names)
	return names
}

// The knobs of tests.
func neverWarm(p *process) { p.neverWarm = true }

func unready(p *process) { p.unready = true }

func recovers(p *process) {
	p.neverWarm, p.warmErr, p.unready, p.neverReaches = false, nil, false, false
	p.work = Work{}
}

// lacks is the knob of a process that cannot serve controllers.
func lacks(names ...string) func(*process) {
	return func(p *process) { p.work.Lacks = names }
}

// hangs makes calls for some of the slots of a process that never return. All its workers have one.
func (p *process) hangs(workers int) (hung Set) {
	calls := p.calls()
	for i := range calls.Slots() {
		if hung.Len() < workers {
			hung.Add(i)
		}
	}
	p.call(hung, forever)
	p.set(func(p *process) { p.work.Hung, p.work.Late = true, calls })
	return hung
}

// taking is the knob of a process whose lists take some time.
func taking(d time.Duration) func(*process) { return func(p *process) { p.warmFor = d } }

// with is the knob of a process with another option.
func with(change func(*Options)) func(*process) {
	return func(p *process) { change(&p.options) }
}

// quiet is the knob of a process whose Leases are long, so that hours take less time.
var quiet = with(func(o *Options) { o.Duration, o.Renew = time.Minute, 20*time.Second })

// shortLeases is the knob of a process with Leases of 5 s.
var shortLeases = with(func(o *Options) { o.Duration = 5 * time.Second })

// leading is the knob of a process that can lead controllers as a whole.
func leading(names ...string) func(*process) { return func(p *process) { p.leads = names } }

var errForbidden = errors.New("forbidden")

var allSlots = slot.All()
