package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/internal/terms"
)

// Runner is run by a [Manager]. A [Controller] is one.
type Runner interface {
	// Name returns the name of the descriptor.
	Name() string
	// RunTerm runs until ctx or the term ends; the term is nil without an election. It is called again
	// for the next term.
	RunTerm(ctx context.Context, t Term) error
	// Health describes the controller.
	Health() Health
}

// Descriptor describes a controller of a [Manager], or a task that it runs beside them.
type Descriptor struct {
	// Name is the name of the controller. Aliases are other names that [Names] may use for it.
	Name    string
	Aliases []string
	// EveryReplica runs it on every replica while the manager runs, whoever holds the Lease, and
	// whatever a group assigns; with ManagerOptions.Slots until the group was left. Its writes are not
	// bound to a term.
	EveryReplica bool
	// DefaultOff leaves the controller out unless Names has its name.
	DefaultOff bool
	// Requires are the resources without which it cannot run. While the server does not serve one of
	// them, the controller is skipped with a log line. It starts when they appear.
	Requires []schema.GroupVersionResource
	// New makes the controller and asks the factory for its informers. It is called once, before the
	// controller runs for the first time.
	New func() (Runner, error)
	// Task is a function to run in place of a controller, as that of a server of webhooks. New is nil
	// then. The function runs until its context ends, which is with the term if there is one. If it
	// returns nil before, it is not run again in the same term. It writes with its context.
	Task func(ctx context.Context) error

	made Runner // by AddController
}

// ManagerOptions are the choices of a [Manager]. The zero value runs every controller, without an
// election.
type ManagerOptions struct {
	// Controllers selects the controllers to run; empty is "*".
	Controllers Names
	// Guard is the guard of the controllers. An Election needs it.
	Guard *Guard
	// Election makes the controllers run in one replica at a time. The caches of the others are warm.
	// Nil is no election. Controllers with Options.Slots run on every replica: give them a manager
	// without one.
	Election *Election
	// Slots makes each controller run in one replica at a time too, but not all controllers in the
	// same one: the members of a group share the controllers as they share slots. It needs a Guard.
	// Controllers with Options.Slots run on every member, for its slots.
	//
	//	slots := controller.NewSlots(controller.ByNamespace)
	//	manager, err := controller.NewManager(factory,
	//		controller.ManagerOptions{Guard: guard, Slots: slots})
	//	group, err := shard.Join(ctx, config, slots, shard.Options{Namespace: "ops", Name: "operator"})
	//	err = manager.Run(ctx)
	Slots *Slots
	// OnStragglers is called when calls still run after their term was lost and StopGrace is over:
	// their effects outside of Kubernetes cannot be stopped. Nil ends the process with a panic that
	// names the calls.
	OnStragglers func(error)
	// HungAfter makes /livez of [Manager.Handler] fail while a key of a controller waits whose workers
	// have all been in a call for so long, so that the kubelet restarts the container. 0 is never. It
	// is to be longer than the longest call.
	HungAfter time.Duration
	// Logger receives warnings and errors; nil is slog.Default().
	Logger *slog.Logger
}

// Election names the Lease that replicas compete for.
type Election = election.Options

// shutdownGrace is the longest time for which a manager waits for the informers at its end.
const shutdownGrace = 20 * time.Second

// leadGrace is the time that the controllers have at the end of a term. Each bounds its calls by
// twice its own StopGrace.
const leadGrace = time.Minute

// requiresPeriod is the period of the checks whether a missing resource has appeared.
const requiresPeriod = 15 * time.Second

// Manager runs controllers on one factory, by name. Use [NewManager]. Its methods may be called
// from any goroutine.
type Manager struct {
	factory *tidings.Factory
	o       ManagerOptions
	elector *election.Elector // nil without an election

	mu          sync.Mutex // guards the rest
	descriptors []Descriptor
	running     bool
	units       []*unit
	checks      []ownCheck
	informers   context.Context // the context of the informers, once Run was called
	ended       bool            // Run is over
	failure     error           // the error of Run
	grace       time.Duration   // the longest that a controller takes to end

	made    chan struct{} // closed when the units are made
	setTerm func(Term)    // sets the default term of the guard during an election
}

// unit is a controller that is to run.
type unit struct {
	Descriptor
	appears chan struct{} // closed when the runner is made
	runner  Runner        // nil until it is made
	missing string        // the resource that it waits for
	ended   error         // the error of its last run, unless it ended with its term
	number  int           // as the entry of a group, if it is led as a whole; 0 if not
}

// NewManager returns a manager of controllers whose informers come from a factory. The manager
// starts the factory.
func NewManager(factory *tidings.Factory, o ManagerOptions) (*Manager, error) {
	if factory == nil {
		return nil, errors.New("controller: NewManager: the factory is nil: " +
			"make one with tidings.NewFactory")
	}
	if o.HungAfter < 0 {
		return nil, fmt.Errorf("controller: NewManager: ManagerOptions.HungAfter is %v: "+
			"give a positive time, or 0 for never", o.HungAfter)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	m := &Manager{factory: factory, o: o, made: make(chan struct{})}
	switch {
	case o.Election == nil && o.Slots == nil:
		return m, nil
	case o.Election != nil && o.Slots != nil:
		return nil, errors.New("controller: NewManager: ManagerOptions has an Election and Slots: " +
			"leave the Election out, as a group leads each controller singly")
	case o.Guard == nil:
		return nil, errors.New("controller: NewManager: an election, and Slots, need " +
			"ManagerOptions.Guard, which keeps back what a replica writes after its term: " +
			"make one with NewGuard")
	case o.Slots != nil:
		if err := o.Slots.setManager(m); err != nil {
			return nil, fmt.Errorf("controller: NewManager: %w", err)
		}
		return m, nil
	}
	options := *o.Election
	options.Grace = cmp.Or(options.Grace, leadGrace)
	if options.Logger == nil {
		options.Logger = o.Logger
	}
	var err error
	if m.elector, err = election.New(o.Guard.Direct(), options); err != nil {
		return nil, fmt.Errorf("controller: NewManager: %w", err)
	}
	return m, nil
}

// Add adds controllers. It returns an error for a name that is taken, and after Run.
func (m *Manager) Add(descriptors ...Descriptor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		return errors.New("controller: Manager.Add: the manager runs already")
	}
	for _, d := range descriptors {
		if err := m.checkDescriptor(d); err != nil {
			return fmt.Errorf("controller: Manager.Add %q: %w", d.Name, err)
		}
		if d.Task != nil {
			d.New = func() (Runner, error) { return &task{Descriptor: d, guard: m.o.Guard}, nil }
		}
		m.descriptors = append(m.descriptors, d)
	}
	return nil
}

// checkDescriptor returns an error if a descriptor lacks something, or a name of it is taken.
func (m *Manager) checkDescriptor(d Descriptor) error {
	switch {
	case d.Name == "":
		return errors.New("the descriptor needs a name")
	case (d.New == nil) == (d.Task == nil):
		return errors.New("set one of Descriptor.New and Descriptor.Task")
	}
	for _, name := range append([]string{d.Name}, d.Aliases...) {
		for _, other := range m.descriptors {
			if other.has(name) {
				return fmt.Errorf("the name %q is taken by controller %q", name, other.Name)
			}
		}
	}
	return nil
}

// AddController adds a controller that exists already.
func (m *Manager) AddController(c Runner) error {
	return m.Add(Descriptor{Name: c.Name(), New: func() (Runner, error) { return c, nil }, made: c})
}

// Run makes the controllers, starts the factory and runs the controllers until ctx ends. With an
// election it runs them while this replica holds the Lease, and with Slots it runs each of them
// while the group assigns it to this replica. With Slots, the end of ctx makes the process leave
// the group, and Run goes on until it has. At the end, the calls end first, then the Lease is
// released, and then the informers stop, unless another manager runs on the factory. It runs once.
// If a controller fails, the others are stopped and its error is returned.
func (m *Manager) Run(ctx context.Context) error {
	err := m.claim(context.WithoutCancel(ctx))
	if err == nil {
		err = m.runSlots(ctx)
		m.end(err)
	}
	if err != nil {
		return fmt.Errorf("controller: Manager.Run: %w", err)
	}
	return nil
}

// runSlots runs the controllers. With Slots, it returns once the group was left.
func (m *Manager) runSlots(ctx context.Context) error {
	if m.o.Slots == nil {
		return m.run(ctx)
	}
	return m.o.Slots.stay.outlast(ctx, func(context.Context) error { return m.run(ctx) })
}

// run makes the controllers, starts the informers, runs the controllers and stops the informers.
func (m *Manager) run(ctx context.Context) error {
	if m.elector != nil {
		m.setTerm = m.o.Guard.AddDefaultTerm(terms.None{})
	}
	for _, u := range m.units {
		if err := m.makeUnit(ctx, u); err != nil {
			return err
		}
	}
	release := m.factory.Inspect().Hold()
	if err := m.factory.Start(m.informers); err != nil {
		release()
		if ctx.Err() != nil && errors.Is(err, tidings.ErrStopped) {
			return nil // another manager of the factory has ended before this one has begun
		}
		return err
	}
	close(m.made)
	err := m.runAll(ctx)
	if last := release(); !last {
		return err
	}
	drained, cancel := context.WithTimeout(m.informers, shutdownGrace)
	defer cancel()
	return errors.Join(err, m.factory.Shutdown(drained))
}

// runAll runs the controllers, in the terms of the election if there is one. Meanwhile it makes
// those that were skipped, when the server serves what they require. If that fails, the others are
// stopped.
func (m *Manager) runAll(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	var appearing sync.WaitGroup
	defer appearing.Wait()
	defer fail(nil)
	failed := make(chan error, len(m.units))
	for _, u := range m.units {
		appearing.Go(func() {
			if err := m.makeLater(ctx, u); err != nil {
				failed <- err
				fail(err)
			}
		})
	}
	var err error
	if m.elector == nil {
		err = m.runUnits(ctx, m.units, nil)
	} else {
		err = m.runElected(ctx, fail)
	}
	fail(nil)
	appearing.Wait()
	close(failed)
	for also := range failed {
		err = errors.Join(err, also)
	}
	return err
}

// runElected runs the controllers in the terms of the election, and meanwhile those of every
// replica. If one of these fails, fail stops the others.
func (m *Manager) runElected(ctx context.Context, fail context.CancelCauseFunc) error {
	var led, everywhere []*unit
	for _, u := range m.units {
		if u.EveryReplica {
			everywhere = append(everywhere, u)
		} else {
			led = append(led, u)
		}
	}
	if len(led) == 0 {
		return m.runUnits(ctx, everywhere, nil)
	}
	beside := make(chan error, 1)
	go func() {
		err := m.runUnits(ctx, everywhere, nil)
		if err != nil {
			fail(err)
		}
		beside <- err
	}()
	err := m.elector.Run(ctx, func(ctx context.Context, t *election.Term) error {
		return m.runTerm(ctx, led, t)
	})
	fail(err)
	return errors.Join(err, <-beside)
}

// claim takes the one right to run, and decides which controllers run.
func (m *Manager) claim(informers context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		return errors.New("the manager was run before: make another one")
	}
	enabled, err := m.o.Controllers.enabled(m.descriptors)
	if err != nil {
		return err
	}
	if len(enabled) == 0 {
		return fmt.Errorf("no controller is to run: the names are %s", namesOf(m.descriptors))
	}
	m.running, m.informers = true, informers
	for _, d := range enabled {
		m.units = append(m.units, &unit{Descriptor: d, appears: make(chan struct{})})
	}
	for _, d := range m.descriptors {
		isEnabled := func(other Descriptor) bool { return other.Name == d.Name }
		if c, ok := d.made.(managed); ok && !slices.ContainsFunc(enabled, isEnabled) {
			c.leaveSlots()
		}
	}
	return nil
}

// runTerm runs controllers for a term of the election.
func (m *Manager) runTerm(ctx context.Context, led []*unit, t *election.Term) error {
	shared := terms.NewShared(t, len(led))
	m.setTerm(shared) // of what calls write with another context
	err := m.runUnits(ctx, led, shared)
	if errors.Is(err, ErrCallsRunning) {
		if t.Err() != nil {
			m.reportStragglers(err)
		}
		return fmt.Errorf("%w: %w", election.ErrStragglers, err)
	}
	if t.Err() != nil && ctx.Err() != nil {
		return nil // the term was lost: the elector waits for the next one
	}
	t.SetHandOver(shared.Left()) //nolint:errcheck // without versions the next holder asks the server
	return err
}

// reportStragglers calls OnStragglers, or ends the process, as calls of a lost term still run.
func (m *Manager) reportStragglers(err error) {
	if m.o.OnStragglers != nil {
		m.o.OnStragglers(err)
		return
	}
	panic(fmt.Sprintf("controller: the term is lost, and calls of it still run: %v", err))
}

// runUnits runs controllers until ctx ends or one of them fails.
func (m *Manager) runUnits(ctx context.Context, units []*unit, t Term) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	errs := make([]error, len(units))
	for i, u := range units {
		group.Go(func() {
			if errs[i] = m.runUnit(ctx, u, t); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// isRunning reports whether the controllers are made, and Run is not over.
func (m *Manager) isRunning() bool {
	select {
	case <-m.made:
	default:
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.ended
}

// end records that Run is over.
func (m *Manager) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended, m.failure = true, err
}

// runUnit runs one controller, once its resources are served.
func (m *Manager) runUnit(ctx context.Context, u *unit, t Term) error {
	runner := m.runnerOf(ctx, u)
	if runner == nil {
		return nil
	}
	if shared, ok := t.(*terms.Shared); ok {
		shared.Begins()
	}
	m.o.Logger.Info("a controller starts", "controller", u.Name)
	run := func(ctx context.Context) error { return runner.RunTerm(ctx, t) }
	var err error
	if u.EveryReplica && m.o.Slots != nil {
		err = m.o.Slots.stay.outlast(ctx, run)
	} else {
		err = run(ctx)
	}
	if hasEndedWith(t, err) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u.ended = err
	return err
}
