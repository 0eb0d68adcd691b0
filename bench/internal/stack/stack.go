package stack

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
)

// Stack makes informers.
type Stack interface {
	// Name names the stack.
	Name() string
	// Policies are the policies for slow handlers that a handler can be given; the
	// first is the default.
	Policies() []string
	// FromMemory returns an informer of the pods of a feed.
	FromMemory(f *feed.Feed, o Options) (Informer, error)
	// FromServer returns an informer of what a server has.
	FromServer(t Target, o Options) (Informer, error)
	// Decoder returns what makes a pod of a protobuf message without an envelope;
	// nil where that is what another stack has.
	Decoder() func(message []byte) (metav1.Object, error)
}

// Options are the choices of an informer. The zero value is ready.
type Options struct {
	// Indexes are index functions by name.
	Indexes map[string]func(metav1.Object) []string
	// ListerWatcher has the objects come from a client-go ListerWatcher, which
	// decodes by itself, as controller-runtime's does. The native API has no such
	// thing.
	ListerWatcher bool
	// Labels are keys of labels to index, and Owners says to index owners, where the
	// stack has such indexes.
	Labels []string
	Owners bool
}

// Target says where a server is and how it sends.
type Target struct {
	// URL is the address of the server.
	URL string
	// Spec is what it was started with.
	server.Spec
}

// Handler is told of changes. Functions that are nil are left out.
type Handler struct {
	// Add is told of a new object, Update of a new state, Delete of the last state.
	Add    func(metav1.Object)
	Update func(before, after metav1.Object)
	Delete func(metav1.Object)
	// Policy is one of the stack's policies; "" is its default.
	Policy string
}

// Informer keeps a cache of objects. What it yields is shared and read-only.
type Informer interface {
	// AddHandler adds a handler; before Run.
	AddHandler(h Handler) error
	// Run runs until the context ends.
	Run(ctx context.Context) error
	// WaitForSync waits until the cache holds the initial set and every handler has
	// returned from all of it.
	WaitForSync(ctx context.Context) error

	// Len counts the objects of the cache.
	Len() int
	// Get returns the object of a key, namespace/name.
	Get(key string) (metav1.Object, bool)
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

// The names of the stacks.
const (
	ClientGo = "client-go"
	Native   = "native"
	DropIn   = "drop-in"
)

// All returns the stacks, client-go's first.
func All() []Stack { return []Stack{clientGo(), native{}, dropIn()} }

// ByName returns the stack of a name.
func ByName(name string) (Stack, error) {
	for _, s := range All() {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("stack: there is no stack %q: use one of %s, %s, %s", name, ClientGo, Native, DropIn)
}

// Environment returns what the environment of a process has to say for its informers to
// list in the way of a server. client-go and the drop-in ask the environment.
func Environment(way server.Way) []string {
	return []string{fmt.Sprintf("KUBE_FEATURE_WatchListClient=%t", way != server.Paged)}
}

// owns reports whether an object is controlled by the owner of a UID.
func owns(o metav1.Object, uid string) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && string(owner.UID) == uid
}

// visit looks at one object, as a program that lists does.
func visit(o metav1.Object) int {
	if o.GetName() == "" {
		return 0
	}
	return 1
}

// unsupported is the error for a kind that has no informer here.
func unsupported(k objects.Kind) error {
	return fmt.Errorf("stack: no informer for %q: use one of the kinds of package objects", string(k))
}
