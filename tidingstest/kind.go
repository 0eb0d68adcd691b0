package tidingstest

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
)

// Event is an event of an informer of any kind.
type Event = tidings.Event[tidings.Object]

// Informer is an informer of config maps, of any kind. Its methods may be called from
// any goroutine.
type Informer interface {
	// Run lists and watches until ctx ends, and returns when everything has ended.
	Run(ctx context.Context) error
	// AddHandler adds a function that receives every change. Of the options, a drop-in has
	// only Resync.
	AddHandler(handle func(Event), o tidings.HandlerOptions) (Registration, error)
	// Synced is closed when the cache holds the first list.
	Synced() <-chan struct{}
	// List returns all that is cached, of one state.
	List() []tidings.Object
	// Get returns the object of a key, nil if there is none.
	Get(key string) tidings.Object
	// Indexed returns the keys of the objects that Setting.Index finds under a value.
	Indexed(value string) ([]string, error)
	// Health says how the informer is.
	Health() tidings.Health
	// WaitFor waits until the cache reflects a version. A drop-in has no such thing,
	// and returns errors.ErrUnsupported.
	WaitFor(ctx context.Context, version string) error
}

// Registration is a handler's place in an informer.
type Registration interface {
	// Remove ends the calls of the handler, without waiting.
	Remove()
	// Done is closed when no call is running or will follow.
	Done() <-chan struct{}
	// Synced is closed when the handler has returned from every initial add.
	Synced() <-chan struct{}
}

// Setting is what an informer of a test is made of.
type Setting struct {
	// Config is how the informer reaches the server; nil for kinds with Fake.
	Config *rest.Config
	// Client is what those read from.
	Client kubernetes.Interface
	// Namespaces are the ones to hold; none means all.
	Namespaces []string
	// Labels is the label selector.
	Labels string
	// Index has to be an index of the informer. It fails, and panics, on some objects.
	Index func(tidings.Object) ([]string, error)
	// Resync is the shortest period of resync that a handler will ask for; 0 means no resyncs.
	Resync time.Duration
	// StopGrace is how long a stop waits for handlers, where that can be chosen.
	StopGrace time.Duration
}

// Kind is a kind of informer.
type Kind struct {
	// Name is what its tests are called after.
	Name string
	// Namespaces is how many namespaces an informer holds; 0 means all.
	Namespaces int
	// DropIn is set for informers that keep to client-go's interfaces, which cannot ask
	// for everything.
	DropIn bool
	// Fake is set for informers that read from Setting.Client. What needs a connection
	// is not tested.
	Fake bool
	// New makes an informer, which does not run yet.
	New func(s Setting) (Informer, error)
}

// Kinds returns every kind of informer that reads from an API server.
func Kinds() []Kind { return append(nativeKinds(), dropInKinds()...) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// indexName is what the kinds call Setting.Index.
const indexName = "tidingstest"

// namespace returns the one namespace to hold, "" being all.
func (s Setting) namespace() string {
	if len(s.Namespaces) == 0 {
		return ""
	}
	return s.Namespaces[0]
}

// errFaulty is what Setting.Index fails with.
var errFaulty = errors.New("this object cannot be indexed, as the test wants it")

// index finds an object under its number. It fails on those that are labelled so.
func index(obj tidings.Object) ([]string, error) {
	switch obj.GetLabels()[labelFault] {
	case "error":
		return nil, errFaulty
	case "panic":
		panic(errFaulty)
	}
	return []string{obj.GetLabels()[labelNumber]}, nil
}
