package sharedinformer

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/internal/reflector"
)

// watchErrors calls a watch error handler where client-go's ListAndWatch would return
// an error: when a list fails, and when a watch cannot be begun, unless the server
// cannot be reached or asks for patience. What ends a watch that had begun is not its
// business, as it is not there.
type watchErrors struct {
	name    string
	example runtime.Object
	reached func() string // the version up to which everything was read
	handler cache.WatchErrorHandlerWithContext
	replica *cache.Reflector // what the handler is given
	version string           // that replica has
}

// WatchErrors returns the function that a reflector tells of its failures, to be called
// from its goroutine only. name and example are those of the collection, and reached
// returns the version up to which everything was read. Without a handler it is nil: the
// reflector's own log says enough.
func WatchErrors(ctx context.Context, name string, example runtime.Object, reached func() string, handler cache.WatchErrorHandlerWithContext) func(reflector.Step, error) {
	if handler == nil {
		return nil
	}
	w := &watchErrors{name: name, example: example, reached: reached, handler: handler}
	return func(ended reflector.Step, err error) {
		switch {
		case ended == reflector.PagedList:
		case ended == reflector.OpenWatch && !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err):
		default:
			return
		}
		w.handler(ctx, w.reflector(), err)
	}
}

// reflector returns a cache.Reflector that answers as one in the place of ours would.
// It never talks to a server: to give it a version, it lists a list of nothing with
// that version.
func (w *watchErrors) reflector() *cache.Reflector {
	version := w.reached()
	if w.replica != nil && w.version == version {
		return w.replica
	}
	silent := logr.Discard()
	w.replica = cache.NewReflectorWithOptions(listOfNothing{version}, w.example, nowhere{}, cache.ReflectorOptions{
		Name: w.name, TypeDescription: w.name, Logger: &silent,
	})
	w.version = version
	if version != "" {
		// It ends with the refusal of the watch, which says nothing.
		_ = w.replica.ListAndWatchWithContext(klog.NewContext(context.Background(), silent))
	}
	return w.replica
}

// errNoWatch refuses the watch of a listOfNothing.
var errNoWatch = errors.New("there is nothing to watch")

// listOfNothing is a cache.ListerWatcher of an empty collection at a version.
type listOfNothing struct{ version string }

func (l listOfNothing) List(metav1.ListOptions) (runtime.Object, error) {
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: l.version}}, nil
}

func (listOfNothing) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, errNoWatch }

// IsWatchListSemanticsUnSupported keeps the reflector from streaming its list.
func (listOfNothing) IsWatchListSemanticsUnSupported() bool { return true }

// nowhere is a cache.ReflectorStore that holds nothing.
type nowhere struct{}

func (nowhere) Add(any) error               { return nil }
func (nowhere) Update(any) error            { return nil }
func (nowhere) Delete(any) error            { return nil }
func (nowhere) Replace([]any, string) error { return nil }
func (nowhere) Resync() error               { return nil }
