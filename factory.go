package tidings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// FactoryOptions are the choices of a [Factory]. The zero value is ready.
type FactoryOptions struct {
	// Namespaces are the namespaces of selections that name none; none means all.
	// Types whose objects have no namespace are not affected; where only the server knows
	// that, it is asked when the informer starts.
	Namespaces []string
	// Scheme knows the Go types that For can be asked for; nil means client-go's,
	// which has every built-in type.
	Scheme *runtime.Scheme
	// Mapper finds the resource of a kind that is not built in, when the informer starts. The
	// server's discovery is asked where the mapper does not know the kind, or where its answer
	// turns out to be wrong; nil asks discovery alone. A meta.ResettableRESTMapper is reset
	// then.
	Mapper meta.RESTMapper
	// FailFast ends WaitForSync as soon as a type is found to be missing or
	// forbidden. Without it, the wait goes on until the type or the permission
	// comes, or the context ends.
	FailFast bool
	// DetectMutations keeps a copy of every object and compares, after each call
	// of a handler and once a second, to find handlers that write to shared objects. It
	// costs as much memory again and much CPU: it is for tests.
	DetectMutations bool
	// OnMutation receives the writes that DetectMutations finds; nil panics.
	OnMutation func(Mutation)
	// StopGrace is the longest time that a stop waits for handlers to return; 0 means 10 s.
	StopGrace time.Duration
	// Transport tunes lists, watches and decoding. Sharing of ShareStrings costs memory, and
	// is for programs that change cached objects, which no program should. A transform may
	// change the object that it receives, which shares strings at most; its result is shared
	// as Sharing says.
	Transport Transport
	// HTTPClient sends the requests, with its own TLS, credentials, proxies and user agent in
	// place of those of the rest.Config. Its timeout applies to lists if the rest.Config has
	// none. nil makes one from the rest.Config.
	HTTPClient *http.Client
	// Logger receives warnings and errors; nil means slog.Default(). slog.DiscardHandler is for
	// silence.
	Logger *slog.Logger
}

// Transport tunes how objects are read from a server, and which parts they share in memory.
type Transport = source.Transport

// Sharing selects the equal parts of cached objects that are one in memory. It does not change
// their values.
type Sharing = source.Sharing

const (
	// ShareAll shares equal strings, messages, slices and maps: a write to one object changes
	// others. It needs the least memory.
	ShareAll = source.ShareAll
	// ShareStrings shares strings alone.
	ShareStrings = source.ShareStrings
	// ShareNothing decodes every object for itself, by the code that was generated for its
	// type.
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
	order    []*shared           // as first asked for
	leaving  []*engine.Lifecycle // of those that were forgotten and are not settled
	stopped  bool
	managers int // that run on it
}

// shareKey has the properties by which informers are shared.
type shareKey struct {
	form      form
	resource  source.Resource
	selection string
	transform *Transform
	slots     *Slots
}

// shared is a collection with the number of its handles.
type shared struct {
	key        shareKey // moves with the namespaces
	asked      shareKey // key at first
	collection managed
	handles    int
}

// managed has the methods of a collection of any type that a factory needs.
type managed interface {
	waiter
	Claim(ctx context.Context) (context.Context, error)
	run(ctx context.Context) error
	End(released bool)
	Life() *engine.Lifecycle
	view() inspect.View
}

// NewFactory returns a factory for the server that config names.
func NewFactory(config *rest.Config, o FactoryOptions) (*Factory, error) {
	if config == nil {
		return nil, errors.New("tidings: NewFactory: the rest.Config is nil: " +
			"load one with clientcmd or rest.InClusterConfig")
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("tidings: NewFactory: %w", err)
	}
	client, err := source.NewClient(config, o.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("tidings: NewFactory: %w", err)
	}
	client.Mapper = o.Mapper
	o.Scheme = cmp.Or(o.Scheme, scheme.Scheme)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return &Factory{client: client, scheme: o.Scheme, o: o, shared: make(map[shareKey]*shared)}, nil
}

// Start runs every informer that was asked for and is not running, until ctx ends.
// It does not wait. It may be called again after more informers were asked for, and for
// a new term after ctx has ended: then every informer has to be asked for again, for it
// runs once. One that was not, and was not released either, is an error that is ErrStopped
// and names it; nothing is started then.
func (f *Factory) Start(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("tidings: Start: %w", errNilContext)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("tidings: Start: the context has ended: %w", context.Cause(ctx))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return fmt.Errorf("tidings: Start: the factory: %w", ErrStopped)
	}
	var over []string
	for _, s := range f.order {
		if s.collection.Over() != nil {
			over = append(over, s.collection.Life().Name())
		}
	}
	if len(over) > 0 {
		return fmt.Errorf("tidings: Start: of an earlier term: %s: "+
			"ask the factory for it again, or Release it: %w",
			strings.Join(over, ", "), ErrStopped)
	}
	for _, s := range f.order {
		if ctx, err := s.collection.Claim(ctx); err == nil { // otherwise it runs already
			go f.run(ctx, s.collection)
		}
	}
	return nil
}

// run runs a collection. The goroutine is the factory's, and ends with ctx, which Shutdown
// ends and waits for.
func (f *Factory) run(ctx context.Context, c managed) {
	if err := c.run(ctx); err != nil {
		f.o.Logger.Error("an informer did not stop cleanly", "informer", c.Life().Name(), "error", err)
	}
}

// WaitForSync waits until every informer that was started holds its first complete
// list. Its error, a *NotSyncedError, names each one that does not, with its state
// and its last error. An informer that was asked for and not started is an error
// at once, and so is one that has stopped or is stopping. One that is released meanwhile
// is waited for no more.
func (f *Factory) WaitForSync(ctx context.Context) error {
	return waitForSync(ctx, f.waiters(), f.o.FailFast)
}

// waiters returns the collections in the order in which they were first asked for.
func (f *Factory) waiters() []waiter {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]waiter, len(f.order))
	for i, s := range f.order {
		all[i] = s.collection
	}
	return all
}

// Health returns the health of every informer, in the order in which they were first asked
// for.
func (f *Factory) Health() []Health {
	all := f.waiters()
	health := make([]Health, len(all))
	for i, w := range all {
		health[i] = w.Health()
	}
	return health
}

// SharingStats describes the tables of parts that objects of all informers share: their entries,
// their size, and the number of times that they were of use.
func (f *Factory) SharingStats() source.TableStats { return f.client.SharingStats(f.o.Transport) }

// Shutdown stops every informer, those included that Run of a handle runs, and waits until
// their goroutines have ended, or until ctx ends. The factory cannot be started again. Its
// error names the informers that have not ended, or the handlers that did not return.
func (f *Factory) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	f.stopped = true
	f.leaving = slices.DeleteFunc(f.leaving, (*engine.Lifecycle).Settled)
	order, lives := slices.Clone(f.order), slices.Clone(f.leaving)
	f.mu.Unlock()
	for _, s := range order {
		s.collection.End(false)
		lives = append(lives, s.collection.Life())
	}
	var stopping []string
	var failures []error
	for _, l := range lives {
		select {
		case <-l.Ended():
		case <-ctx.Done():
		}
		if l.HasEnded() {
			failures = append(failures, l.Err())
		} else {
			stopping = append(stopping, l.Name())
		}
	}
	if len(stopping) > 0 {
		return fmt.Errorf("tidings: Shutdown: informers are still stopping: %s: %w",
			strings.Join(stopping, ", "), context.Cause(ctx))
	}
	return errors.Join(failures...)
}

// acquire returns the collection of a key and counts one more handle. It calls create for a
// new key. The collection calls moved when its selection has changed.
func (f *Factory) acquire(
	key shareKey, create func(moved func(selection string)) (managed, error),
) (*shared, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, fmt.Errorf("the factory: %w", ErrStopped)
	}
	s, ok := f.shared[key]
	if ok && s.collection.Over() != nil {
		f.forgetLocked(s) // its context has ended: the caller needs a new one
		ok = false
	}
	if !ok {
		f.forgetEndedLocked(key)
		s = &shared{key: key, asked: key}
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

// forgetEndedLocked forgets collections that have ended and were asked for by a key: they
// are asked for again, though they may have moved to another key.
func (f *Factory) forgetEndedLocked(asked shareKey) {
	for _, s := range slices.Clone(f.order) {
		if s.asked == asked && s.collection.Over() != nil {
			f.forgetLocked(s)
		}
	}
}

// move makes a collection shared under another selection, unless another collection already
// is: that one stays shared. It is called with locks of the collection held, and f.mu is never
// held while they are taken.
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
	s.handles--
	last := s.handles == 0
	if last {
		f.forgetLocked(s)
	}
	f.mu.Unlock()
	if last {
		s.collection.End(true)
	}
}

// forgetLocked takes a collection off the factory, which keeps its life until it has ended.
func (f *Factory) forgetLocked(s *shared) {
	if f.shared[s.key] == s {
		delete(f.shared, s.key)
	}
	f.leaving = slices.DeleteFunc(f.leaving, (*engine.Lifecycle).Settled)
	if i := slices.Index(f.order, s); i >= 0 {
		f.order = slices.Delete(f.order, i, i+1)
		f.leaving = append(f.leaving, s.collection.Life())
	}
}

// check returns an error that names the first option that cannot be used.
func (o FactoryOptions) check() error {
	if err := checkNamespaces(o.Namespaces); err != nil {
		return fmt.Errorf("FactoryOptions.Namespaces: %w", err)
	}
	if o.StopGrace < 0 {
		return badOption("FactoryOptions.StopGrace", o.StopGrace, "give a duration, or 0 for 10 s")
	}
	return o.Transport.Check("FactoryOptions.Transport")
}
