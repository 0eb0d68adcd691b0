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
	// List returns all cached objects, of one state.
	List() []tidings.Object
	// Get returns the object of a key, nil if there is none.
	Get(key string) tidings.Object
	// Indexed returns the keys of the objects that Setting.Index finds under a value.
	Indexed(value string) ([]string, error)
	// Health describes the informer.
	Health() tidings.Health
	// WaitFor waits until the cache reflects a version. A drop-in cannot do that, and
	// returns errors.ErrUnsupported.
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

// Setting has the parameters of the informer of a test.
type Setting struct {
	// Config is the client configuration of the informer; nil for kinds with Fake.
	Config *rest.Config
	// Client is the client that kinds with Fake read from.
	Client kubernetes.Interface
	// Namespaces are the namespaces to hold; nil means all.
	Namespaces []string
	// Labels is the label selector.
	Labels string
	// Index has to be an index of the informer. It fails, and panics, on some objects.
	Index func(tidings.Object) ([]string, error)
	// Resync is the shortest period of resync that a handler will ask for; 0 means no resyncs.
	Resync time.Duration
	// StopGrace is the time for which a stop waits for handlers, if the kind has such an
	// option.
	StopGrace time.Duration
}

// Kind is a kind of informer.
type Kind struct {
	// Name is the first part of the names of its tests.
	Name string
	// Namespaces is the number of namespaces that an informer holds; 0 means all.
	Namespaces int
	// DropIn is set for informers with client-go's interfaces, which lack some functions.
	DropIn bool
	// Fake is set for informers that read from Setting.Client. Tests that need a connection
	// are left out.
	Fake bool
	// New makes an informer, which does not run yet.
	New func(s Setting) (Informer, error)
}

// Kinds returns every kind of informer that reads from an API server.
func Kinds() []Kind { return append(nativeKinds(), dropInKinds()...) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// indexName is the name of the index with Setting.Index.
const indexName = "tidingstest"

// namespace returns the one namespace to hold, "" being all.
func (s Setting) namespace() string {
	if len(s.Namespaces) == 0 {
		return ""
	}
	return s.Namespaces[0]
}

// errFaulty is the error of Setting.Index.
var errFaulty = errors.New("this object cannot be indexed, as the test wants it")

// index finds an object under its number. It fails on objects with labelFault.
func index(obj tidings.Object) ([]string, error) {
	switch obj.GetLabels()[labelFault] {
	case "error":
		return nil, errFaulty
	case "panic":
		panic(errFaulty)
	}
	return []string{obj.GetLabels()[labelNumber]}, nil
}
