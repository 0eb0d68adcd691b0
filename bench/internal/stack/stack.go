package stack

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// Stack makes informers.
type Stack struct {
	// Name names the stack.
	Name string
	// FromMemory returns an informer of the pods of a feed.
	FromMemory func(f *feed.Feed, o Options) (Informer, error)
	// FromServer returns an informer of the objects of a server.
	FromServer func(t Target, o Options) (Informer, error)
	// Decoder returns a function that makes a pod of a protobuf message without an
	// envelope; nil where the stack uses the decoder of another one.
	Decoder func() func(message []byte) (tidings.Object, error)
	// NewCache makes the cache of a manager of controller-runtime; nil where a stack has none.
	NewCache cache.NewCacheFunc
}

// Managers returns the stacks that make caches of managers: controller-runtime's own first.
func Managers() []Stack {
	return []Stack{
		{Name: "controller-runtime", NewCache: cache.New},
		{Name: "NewCache", NewCache: ctrlruntime.NewCache},
	}
}

// All returns the stacks, client-go's first.
func All() []Stack { return []Stack{ClientGo(), Native(), DropIn()} }

// Options are the choices of an informer. The zero value is ready.
type Options struct {
	// Indexes are index functions by name.
	Indexes map[string]func(tidings.Object) []string
	// ListerWatcher makes the informer read from a client-go ListerWatcher, which
	// decodes by itself, as controller-runtime's does. The native API has no such
	// thing.
	ListerWatcher bool
	// Labels are keys of labels to index, and Owners requests an index of owners, where the stack
	// has such indexes.
	Labels []string
	Owners bool
	// Slots are those of which an informer of the native API has the objects; nil is all.
	Slots *tidings.Slots
}

// Target is the address of a server and the form of its objects.
type Target struct {
	// URL is the address of the server.
	URL string
	// Spec is the server's.
	server.Spec
}

// Change is the type of a notification.
type Change int

// The changes.
const (
	// Added is a new object.
	Added Change = iota
	// Updated is a new state of an object.
	Updated
	// Deleted is the last state of an object that is gone.
	Deleted
)

// Handler receives a change: the state after it, or the last state of a deleted object.
// before is nil unless the change is Updated.
type Handler func(c Change, before, after tidings.Object)

// Informer keeps a cache of objects. The objects that it yields are shared and read-only.
type Informer interface {
	// AddHandler adds a handler; before Run. Stacks without policies accept the default,
	// ConflateUpdates, alone.
	AddHandler(h Handler, policy tidings.Policy) error
	// Run runs until the context ends.
	Run(ctx context.Context) error
	// WaitForSync waits until the cache holds the initial set and every handler has
	// returned from all of it.
	WaitForSync(ctx context.Context) error

	// Len counts the objects of the cache.
	Len() int
	// Get returns the object of a key, namespace/name.
	Get(key string) (tidings.Object, bool)
	// Namespace visits the objects of a namespace and counts them.
	Namespace(namespace string) int
	// Select visits the objects that a selector matches and counts them.
	Select(selector labels.Selector) int
	// Owned visits the objects of a namespace that the owner controls and counts them.
	Owned(namespace, uid string) int
	// Lookup visits the objects that an index has under a value and counts them.
	Lookup(index, value string) int
	// All visits every object and counts them.
	All() int
}

// Environment returns the variable that makes informers of client-go and of the drop-in
// list as a server sends: in pages, or streamed.
func Environment(paged bool) string {
	return fmt.Sprintf("KUBE_FEATURE_WatchListClient=%t", !paged)
}

// visit reads one object, as a program that lists does, and counts it.
func visit(o tidings.Object) int {
	if o.GetName() == "" {
		return 0
	}
	return 1
}

// waitAll waits until all channels are closed.
func waitAll(ctx context.Context, waits []<-chan struct{}) error {
	for _, wait := range waits {
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("stack: wait for sync: %w", context.Cause(ctx))
		}
	}
	return nil
}

// errUnsupported is the error for a kind without an informer.
func errUnsupported(k objects.Kind) error {
	return fmt.Errorf("stack: no informer for %q: use one of the kinds of package objects", k)
}
