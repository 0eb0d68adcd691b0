package tidings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/reflector"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/source/dedup"
)

// FactoryOptions are the choices of a [Factory]. The zero value is ready.
type FactoryOptions struct {
	// Namespaces are the namespaces of selections that name none; none means all.
	// Types whose objects have no namespace are not affected.
	Namespaces []string
	// Scheme knows the Go types that For can be asked for; nil means client-go's,
	// which has every built-in type.
	Scheme *runtime.Scheme
	// Mapper finds the resource of a kind that is not built in. nil asks the
	// server's discovery when the informer starts.
	Mapper meta.RESTMapper
	// FailFast ends WaitForSync as soon as a type is found to be missing or
	// forbidden. Without it, the wait goes on until the type or the permission
	// comes, or the context ends.
	FailFast bool
	// DetectMutations keeps a copy of every object and compares, after each call
	// of a handler and once a second, to find who writes to what is shared. It
	// costs as much memory again and much CPU: it is for tests.
	DetectMutations bool
	// OnMutation is told what DetectMutations finds; nil panics.
	OnMutation func(Mutation)
	// PageSize is how many objects a page of a list asks for where the server
	// does not stream lists; 0 means 500.
	PageSize int64
	// NoStreamedLists makes every list one in pages.
	NoStreamedLists bool
	// WatchTimeout is the least time that a watch lasts before it is begun anew;
	// 0 means 5 minutes.
	WatchTimeout time.Duration
	// MaxSilence is how long a list, streamed or in pages, may bring nothing before it is
	// ended and begun anew; a list that brings something may last as long as it needs. 0
	// means 2 minutes, below 0 there is no limit.
	MaxSilence time.Duration
	// Backoff says how long to wait after failures.
	Backoff reflector.Backoff
	// StopGrace is how long a stop waits for handlers to return; 0 means 10 s.
	StopGrace time.Duration
	// MaxFrameBytes and MaxListBytes bound one event and one page of a list; 0
	// means 32 MiB and 2 GiB.
	MaxFrameBytes, MaxListBytes int
	// Sharing says what cached objects have in common in memory; 0 means ShareAll.
	// ShareStrings costs more of it, and is for programs that change cached objects,
	// which nobody should. A transform may change the object that it is given, which
	// has strings in common with others at most; what it returns is shared.
	Sharing Sharing
	// Logger receives what goes wrong; nil discards it.
	Logger *slog.Logger
}

// Sharing says what cached objects have in common in memory. Their values are the same
// whatever it is.
type Sharing = source.Sharing

const (
	// ShareAll has objects share the strings, messages, slices and maps that they have
	// in common: to change one is to change others. It needs the least memory.
	ShareAll = source.ShareAll
	// ShareStrings has them share strings alone.
	ShareStrings = source.ShareStrings
	// ShareNothing has every object decoded for itself, by the code that was generated
	// for its type.
	ShareNothing = source.ShareNothing
)

// Factory hands out informers for one API server and runs them. Asking twice for
// the same type and selection gives two handles to one informer.
type Factory struct {
	client *source.Client
	scheme *runtime.Scheme
	o      FactoryOptions

	mu       sync.Mutex // guards the rest
	shared   map[shareKey]*shared
	order    []*shared // as first asked for
	running  sync.WaitGroup
	failures []error // of informers that have returned from running
	stopped  bool
}

// shareKey is what informers are shared by.
type shareKey struct {
	form      string // the Go type, or how the object is held
	resource  source.Resource
	selection string
	transform *Transform
}

// shared is a collection with the number of its handles.
type shared struct {
	key        shareKey
	collection managed
	handles    int
	cancel     context.CancelFunc // nil until it is started
}

// managed is what a factory needs of a collection of any type.
type managed interface {
	waiter
	claim() error
	run(ctx context.Context) error
}

// NewFactory returns a factory for the server that config names.
func NewFactory(config *rest.Config, o FactoryOptions) (*Factory, error) {
	if config == nil {
		return nil, errors.New("tidings: NewFactory: the rest.Config is nil: load one with clientcmd or rest.InClusterConfig")
	}
	if err := checkNamespaces(o.Namespaces); err != nil {
		return nil, fmt.Errorf("tidings: NewFactory: FactoryOptions.Namespaces: %w", err)
	}
	if o.Sharing < ShareAll || o.Sharing > ShareNothing {
		return nil, fmt.Errorf("tidings: NewFactory: FactoryOptions.Sharing: there is no %d: use ShareAll, ShareStrings or ShareNothing", o.Sharing)
	}
	client, err := source.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("tidings: NewFactory: %w", err)
	}
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Factory{client: client, scheme: o.Scheme, o: o, shared: make(map[shareKey]*shared)}, nil
}

// Start runs every informer that was asked for and is not running, until ctx ends.
// It does not wait. It may be called again after more informers were asked for.
func (f *Factory) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("tidings: Start: the context has ended: %w", context.Cause(ctx))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return fmt.Errorf("tidings: Start: the factory: %w", ErrStopped)
	}
	for _, s := range f.order {
		if s.cancel == nil {
			f.startLocked(ctx, s)
		}
	}
	return nil
}

// startLocked runs a collection, unless Run of a handle was quicker.
func (f *Factory) startLocked(ctx context.Context, s *shared) {
	ctx, s.cancel = context.WithCancel(ctx)
	if s.collection.claim() != nil {
		return // it runs already, which is what was asked for
	}
	f.running.Go(func() {
		defer s.cancel()
		if err := s.collection.run(ctx); err != nil {
			f.o.Logger.Error("an informer did not stop cleanly", "error", err)
			f.mu.Lock()
			f.failures = append(f.failures, err)
			f.mu.Unlock()
		}
	})
}

// WaitForSync waits until every informer that was started holds its first complete
// list. Its error, a *NotSyncedError, names each one that does not, with its state
// and its last error. An informer that was asked for and not started is an error
// at once.
func (f *Factory) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	all := make([]waiter, len(f.order))
	for i, s := range f.order {
		if s.cancel == nil {
			f.mu.Unlock()
			return &NotSyncedError{Informers: []Health{s.collection.health()}, Cause: ErrNotStarted}
		}
		all[i] = s.collection
	}
	f.mu.Unlock()
	return waitForSync(ctx, all, f.o.FailFast)
}

// Health says how every informer is, in the order in which they were first asked
// for.
func (f *Factory) Health() []Health {
	f.mu.Lock()
	order := slices.Clone(f.order)
	f.mu.Unlock()
	health := make([]Health, len(order))
	for i, s := range order {
		health[i] = s.collection.health()
	}
	return health
}

// SharingStats says what the objects of all informers have in common: what is known of
// them, what that takes, and how often it was of use.
func (f *Factory) SharingStats() dedup.TableStats { return f.client.SharingStats() }

// Shutdown stops every informer and waits until their goroutines have ended, or
// until ctx ends. The factory cannot be started again. Its error names the handlers
// that did not return.
func (f *Factory) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	f.stopped = true
	for _, s := range f.order {
		if s.cancel == nil {
			// What was never started has handlers all the same, which end with it.
			f.startLocked(context.Background(), s)
		}
		s.cancel()
	}
	f.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.running.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return fmt.Errorf("tidings: Shutdown: informers are still stopping: %w", context.Cause(ctx))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.failures...)
}

// acquire returns the collection of a key with one handle more, made by create if
// there is none. create is given what to tell of a change of the selection.
func (f *Factory) acquire(key shareKey, create func(moved func(selection string)) (managed, error)) (*shared, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, fmt.Errorf("the factory: %w", ErrStopped)
	}
	s, ok := f.shared[key]
	if ok && s.collection.hasStopped() {
		f.forgetLocked(s) // its context has ended: whoever asks now wants a new one
		ok = false
	}
	if !ok {
		s = &shared{key: key}
		var err error
		if s.collection, err = create(func(selection string) { f.move(s, selection) }); err != nil {
			return nil, err
		}
		f.shared[key] = s
		f.order = append(f.order, s)
	}
	s.handles++
	return s, nil
}

// move has a collection be found under another selection, unless there is one
// already, which then stays the one to be shared.
func (f *Factory) move(s *shared, selection string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shared[s.key] == s {
		delete(f.shared, s.key)
	}
	s.key.selection = selection
	if f.shared[s.key] == nil && slices.Contains(f.order, s) {
		f.shared[s.key] = s
	}
}

// giveBack takes a handle back and stops an informer that has none left.
func (f *Factory) giveBack(s *shared) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.handles--; s.handles > 0 {
		return
	}
	f.forgetLocked(s)
	if s.cancel != nil {
		s.cancel()
	}
}

// forgetLocked takes a collection off the factory.
func (f *Factory) forgetLocked(s *shared) {
	if f.shared[s.key] == s {
		delete(f.shared, s.key)
	}
	f.order = slices.DeleteFunc(f.order, func(other *shared) bool { return other == s })
}
