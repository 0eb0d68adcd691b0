package ctrlruntime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/source"
)

// ErrBehind is the error of a read whose cache does not show a write of the client after 30
// seconds, although the cache does not leave the object out.
var ErrBehind = errors.New("the cache is behind a write of this client: read again later")

// NewClient is controller-runtime's client.New for a cache of [NewCache]. Its reads from the cache
// wait until the cache shows the client's writes. It is the value of
// ctrl.Options.NewClient:
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		NewCache: ctrlruntime.NewCache, NewClient: ctrlruntime.NewClient,
//	})
//
// A Get waits for the writes of its object, a List for those of its type in its namespace, each in
// the form (Go type, maps, metadata) in which it reads. They wait for writes that returned before
// the read, but not for those of other clients or other processes. A write of the status or
// another subresource is a write of the object. A wait ends with the context. After 10 seconds the
// server is asked whether the cache can show the write at all, and if it can, after 30 seconds the
// error is ErrBehind. The server is also asked about a write whose outcome the client does not
// know. That needs the verbs get and list on the resources that are written.
//
// Writes have a timeout of 34 seconds. A read with client.DisableReadYourWritesConsistency does not
// wait. A write ignores that option. NewClient ignores
// options.Cache.EnableReadYourWritesConsistency, which has the same purpose. Without options.Cache,
// it returns the client of client.New.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	if options.Cache == nil || options.Cache.Reader == nil {
		return client.New(config, options)
	}
	of, ok := options.Cache.Reader.(*wrapper)
	if !ok {
		return nil, fmt.Errorf("ctrlruntime: NewClient: the cache is a %T: "+
			"it needs the cache itself that ctrlruntime.NewCache makes, as ctrl.Options.NewCache", options.Cache.Reader)
	}
	server, err := guard.New(config, guard.Options{})
	if err != nil {
		return nil, fmt.Errorf("ctrlruntime: NewClient: %w", err)
	}
	httpClient, err := httpClientOf(config, options.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("ctrlruntime: NewClient: %w", err)
	}
	of.informers.readNewest.Store(true)
	w := newWrites(server, of.informers)
	options.HTTPClient = wrapped(httpClient, func(next http.RoundTripper) http.RoundTripper {
		return &recorder{server.Wrap(next), w}
	})
	cacheOptions := *options.Cache
	cacheOptions.Reader, cacheOptions.EnableReadYourWritesConsistency = &waitingReader{of, w}, nil
	options.Cache = &cacheOptions
	return client.New(config, options)
}

// recorder records the writes of an HTTP client.
type recorder struct {
	next   http.RoundTripper // the transport of the guard
	writes *writes
}

// WrappedRoundTripper returns the transport that sends, for apimachinery's util/net.
func (r *recorder) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip sends a request. Its writes are recorded before the caller receives the end of the
// answer, or the error.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return r.next.RoundTrip(req)
	}
	ctx, call := r.writes.server.Begin(req.Context(), nil)
	resp, err := r.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		r.writes.record(call.End())
		return nil, err
	}
	end := sync.OnceFunc(func() { r.writes.record(call.End()) })
	resp.Body = &recordedBody{resp.Body, end}
	return resp, nil
}

// recordedBody is the body of an answer to a write. The guard below it knows the outcome at its
// end.
type recordedBody struct {
	io.ReadCloser
	end func()
}

// Read reads the next part.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

// Close closes the body.
func (b *recordedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// waitingReader reads the cache once it shows the writes.
type waitingReader struct {
	*wrapper
	writes *writes
}

// Get reads an object.
func (r *waitingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object,
	opts ...client.GetOption) error {
	get := func() error { return r.wrapper.Get(ctx, key, obj, opts...) }
	var o client.GetOptions
	if o.ApplyOptions(opts); o.DisableReadYourWritesConsistency {
		return get()
	}
	kind, err := apiutil.GVKForObject(obj, r.informers.scheme)
	if err != nil {
		return get() // it returns the same error
	}
	return r.await(ctx, obj, kind, key.Namespace, key.Name, get)
}

// List lists objects.
func (r *waitingReader) List(ctx context.Context, list client.ObjectList,
	opts ...client.ListOption) error {
	read := func() error { return r.wrapper.List(ctx, list, opts...) }
	var o client.ListOptions
	if o.ApplyOptions(opts); o.DisableReadYourWritesConsistency {
		return read()
	}
	kind, err := apiutil.GVKForObject(list, r.informers.scheme)
	if err != nil {
		return read() // it returns the same error
	}
	// controller-runtime's cache finds the informer of a list in this way.
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return r.await(ctx, list, kind, o.Namespace, "", read)
}

// await calls read once the informers of a kind that it uses show the writes of the object that it
// reads. With the name "" it waits for the writes of all objects in the namespace, or in all
// namespaces for "". A read that has made an informer is repeated: the informer may not show a
// write yet whose outcome is unknown.
func (r *waitingReader) await(ctx context.Context, of runtime.Object, kind schema.GroupVersionKind,
	namespace, name string, read func() error) error {
	if r.writes.none() {
		return read()
	}
	for {
		used := r.informers.readBy(kind, formOf(of), namespace)
		if err := r.writes.await(ctx, used, namespace, name); err != nil {
			return fmt.Errorf("ctrlruntime: read %T %q: %w", of, source.Key(namespace, name), err)
		}
		err := read()
		if ctx.Err() != nil || slices.Equal(used, r.informers.readBy(kind, formOf(of), namespace)) {
			if err == nil && len(used) == 0 {
				r.informers.checkKnown(kind, formOf(of))
			}
			return err
		}
	}
}
