package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings/internal/engine/served"
	"github.com/tidings-go/tidings/internal/engine/tape"
)

const (
	defaultMaxFrameBytes = 32 << 20

	// defaultMaxListBytes is 2 GiB, or a quarter of the range of an int where that is less.
	defaultMaxListBytes = min(2<<30, math.MaxInt/4+1)
	// maxBatch bounds the frames that one Next decodes, so that a long burst reaches the cache
	// while it lasts.
	maxBatch = 256
)

// RESTOptions narrows the collection that a [REST] source reads. Its zero value is the whole
// collection, with the default limits. With options that cannot be used, every List and Watch fails
// with an error that names them.
type RESTOptions struct {
	Transport
	// Namespace is the one namespace to read, "" for all.
	Namespace string
	// ClusterScoped states that Namespace is empty because objects of the resource have no
	// namespace, as far as the caller knows. The server is asked before each list and each
	// watch, which fail with [ErrNamespaced] when they have one by now.
	ClusterScoped bool
	// Labels and Fields are selectors in Kubernetes' syntax, "" for all objects.
	Labels, Fields string
	// Tweak changes the options of every list and every watch before they are sent,
	// selectors included; nil changes nothing. It must not change the options that the
	// caller of List and Watch sets: versions, paging and the kind of watch.
	Tweak func(*metav1.ListOptions)
	// Drop leaves fields out of the objects, as if they had never been set. A path names
	// fields as JSON does, joined by dots, as in "metadata.managedFields" or
	// "spec.containers.env": it goes through lists and ends at a field of any type, but does
	// not go into a map. Of objects held as maps, only paths in "metadata" are checked. If a
	// path cannot be left out, every List and Watch fails with the reason.
	//
	// In protobuf these fields are not even decoded, nor are their bytes checked. An object
	// without them must not be given to an Update: the server would take it as a request to
	// remove them. Use a Patch.
	Drop []string
	// DropManagedFields asks the server to leave metadata.managedFields out of what it sends, with
	// the parameter drop of Accept (KEP-5958). Drop implies it where "metadata.managedFields" is
	// among the paths; set it alone if the Go type of the objects does not have the field. Servers
	// that do not know the parameter send the field all the same: only Drop takes it out of every
	// object. A server that answers 406 is not asked again: see Transport.NoServerDrop, which turns
	// it off.
	DropManagedFields bool
	// NoKind leaves the kind out of metadata, as client-go's metadata client does. Items of lists
	// in JSON keep the kind that they come with, PartialObjectMetadata. Other sources ignore the
	// option.
	NoKind bool
}

// REST is a [Source] that sends its own requests and decodes the answers.
type REST[T Object] struct {
	client    *Client
	decoder   decoder[T]
	options   RESTOptions
	bookmarks decoder[*metav1.PartialObjectMetadata]
	invalid   error // says which of RESTOptions cannot be used, or nil
	// objectSize is the least memory of an object of a page, in bytes.
	objectSize int64
	// identifiable and identifiableInJSON say that the identity of objects in protobuf, or in
	// JSON, can be read before they are decoded.
	identifiable, identifiableInJSON bool

	needsKind bool     // the kind of the resource has to be written into the objects
	declares  []string // the fields of a view; nil for whole objects

	buffer   atomic.Pointer[[]byte] // of the last page, for the next one
	received atomic.Uint64          // bytes of answers
	asked    Resource               // as it was given
	// lock guards resource and doubted. It is a channel, because a context may end the wait for it:
	// discovery happens under it.
	lock     chan struct{}
	resource Resource // asked, completed by discovery
	doubted  Resource // the last answer of a mapper that the server has contradicted
	// found is the last complete resource, listed the name of the last one that was listed; nil
	// before.
	found  atomic.Pointer[Resource]
	listed atomic.Pointer[string]
	// wrongKind is 1 after a stream has brought an object of another kind, and 2 when the resource
	// was asked for again because of it, until that changes.
	wrongKind atomic.Int32
}

// NewTyped returns a source of the objects of resource as the Go type that make returns, for
// example func() *corev1.Pod { return new(corev1.Pod) }. Several goroutines may call make at
// once. Protobuf is used if the type can be read from it. resource.Kind is required.
func NewTyped[T Object](c *Client, resource Resource, make func() T, o RESTOptions) *REST[T] {
	s := newREST(c, resource, o, func(o RESTOptions, table *Table) decoder[T] {
		return newTypedDecoder(resource.groupVersionKind(), make, table, o.Sharing)
	})
	t := reflect.TypeOf(make())
	s.identifiable, s.identifiableInJSON = identifiable(t), identifiableInJSON(t)
	if t.Kind() == reflect.Pointer {
		s.objectSize += int64(t.Elem().Size())
	}
	return s
}

// NewDynamic returns a source of the objects of resource as maps.
func NewDynamic(c *Client, resource Resource, o RESTOptions) *REST[*unstructured.Unstructured] {
	type object = *unstructured.Unstructured
	s := newREST(c, resource, o, func(o RESTOptions, table *Table) decoder[object] {
		return newDynamicDecoder(resource.groupVersionKind(), table, o.Sharing)
	})
	s.identifiableInJSON = true
	return s
}

// NewMetadata returns a source of the metadata of the objects of resource. The server leaves out
// everything else. The objects get the kind of the resource, so that events can be recorded for
// them. If resource.Kind is empty, the server is asked for it when it has answered a list; without
// an answer within ten seconds, the kind is PartialObjectMetadata.
func NewMetadata(c *Client, resource Resource, o RESTOptions) *REST[*metav1.PartialObjectMetadata] {
	type object = *metav1.PartialObjectMetadata
	s := newREST(c, resource, o, func(o RESTOptions, table *Table) decoder[object] {
		return newMetadataDecoder(table, o.Sharing, resource, o.NoKind)
	})
	s.identifiable, s.identifiableInJSON, s.needsKind = true, true, !o.NoKind
	return s
}

// leastBytes is the least bound of a frame or a page: no object fits into less.
const leastBytes = 1000

// Check returns an error that names the first option that cannot be used, as a field of a
// struct of that name: a caller with the same options uses it to check its own. Drop is
// checked by the sources, which know the type.
func (o RESTOptions) Check(name string) error {
	if err := o.Transport.Check(name); err != nil {
		return err
	}
	if o.ClusterScoped && o.Namespace != "" {
		return fmt.Errorf("%s.ClusterScoped is true: leave Namespace, which is %q, empty",
			name, o.Namespace)
	}
	if _, err := labels.Parse(o.Labels); err != nil {
		return fmt.Errorf("%s.Labels %.100q: %w", name, o.Labels, err)
	}
	if _, err := fieldselector.ParseSelector(o.Fields); err != nil {
		return fmt.Errorf("%s.Fields %.100q: %w", name, o.Fields, err)
	}
	return nil
}

// newREST returns a source of any kind. Of Secrets nothing is shared, in whatever form: the
// annotations in their metadata may hold their data.
func newREST[T Object](c *Client, resource Resource, o RESTOptions,
	newDecoder func(RESTOptions, *Table) decoder[T]) *REST[T] {
	invalid := o.Check("RESTOptions")
	o.MaxFrameBytes = cmp.Or(o.MaxFrameBytes, defaultMaxFrameBytes)
	o.MaxListBytes = cmp.Or(o.MaxListBytes, defaultMaxListBytes)
	o.DropManagedFields = !o.NoServerDrop && (o.DropManagedFields || dropsManagedFields(o.Drop))
	if resource.isSecrets() {
		o.Sharing = ShareNothing
	}
	if c == nil {
		c = new(Client) // of a source that decodes alone
	}
	table := cmp.Or(o.Table, &c.table)
	s := &REST[T]{
		client: c, decoder: newDecoder(o, table), options: o, invalid: invalid,
		asked: resource, resource: resource, lock: make(chan struct{}, 1),
		objectSize: int64(unsafe.Sizeof(Item[T]{})),
	}
	s.bookmarks = newTypedDecoder(s.decoder.wants(), newMetadata, table, ShareNothing)
	if len(o.Drop) > 0 {
		if err := s.decoder.without(o.Drop); err != nil {
			s.invalid = fmt.Errorf("RESTOptions.Drop: %w", err)
		}
	}
	return s
}

// fail returns an error of a request that was not sent.
func (s *REST[T]) fail(op string, resource Resource, err error) error {
	r := request{op: op, resource: resource.String(), namespace: s.options.Namespace}
	return r.fail(Connecting, err)
}

// acquire takes the lock, which a receive gives back, unless ctx ends before.
func (s *REST[T]) acquire(ctx context.Context) error {
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resolved returns the resource for a request. It asks the server for the fields that the request
// needs, except for the next page of a list.
func (s *REST[T]) resolved(ctx context.Context, op string, nextPage bool,
	onActivity func()) (Resource, error) {
	if err := s.acquire(ctx); err != nil {
		return s.asked, s.fail(op, s.asked, err)
	}
	defer func() { <-s.lock }()
	if s.wrongKind.CompareAndSwap(1, 2) {
		s.doubt()
	}
	if s.options.ClusterScoped && !nextPage {
		s.resource = s.asked
		s.resource.Scope = ScopeUnknown
	}
	needsScope := s.options.ClusterScoped || s.options.Namespace != ""
	if s.resource.Name == "" || s.resource.Scope == ScopeUnknown && needsScope {
		doubted := s.doubted
		s.doubted = Resource{} // a server without discovery contradicts a mapper once
		resource, err := s.client.resolve(ctx, s.resource, question{
			fresh: s.options.ClusterScoped, doubted: doubted, onActivity: onActivity,
			fits:  func(r Resource) bool { return s.wrongScope(r) == nil },
			limit: s.options.MaxListBytes,
		})
		if err != nil {
			return s.resource, err
		}
		s.resource = resource
		if before := s.found.Swap(&resource); before == nil || *before != resource {
			s.wrongKind.Store(0)
		}
	}
	resource := s.resource
	if err := s.wrongScope(resource); err != nil {
		s.resource = s.asked // its definition may come back with another scope
		return resource, s.fail(op, resource, err)
	}
	return resource, nil
}

// kindWait is the longest wait for the kind of the objects of a list.
const kindWait = 10 * time.Second

// learnKind asks the server for the kind of the objects of a list that it has answered, unless it
// is known or they come with it. Without an answer they are read without their kind.
func (s *REST[T]) learnKind(ctx context.Context, onActivity func()) {
	if !s.needsKind || s.acquire(ctx) != nil {
		return
	}
	defer func() { <-s.lock }()
	if s.resource.Kind == "" {
		ctx, cancel := context.WithTimeout(ctx, kindWait)
		defer cancel()
		resource, err := s.client.discover(ctx, s.resource, question{
			onActivity: onActivity, limit: s.options.MaxListBytes,
		})
		if err != nil {
			return
		}
		s.resource.Kind = resource.Kind
	}
	s.decoder.setKind(s.resource.groupVersionKind())
}

// wrongScope returns the error of a resource whose scope is not the one of the options.
func (s *REST[T]) wrongScope(r Resource) error {
	switch {
	case r.Scope == ScopeCluster && s.options.Namespace != "":
		return ErrWrongScope
	case r.Scope == ScopeNamespaced && s.options.ClusterScoped:
		return ErrNamespaced
	}
	return nil
}

// Resource returns the resource as the server or a mapper completed it last; as it was given, if
// nothing was open.
func (s *REST[T]) Resource() Resource {
	if found := s.found.Load(); found != nil {
		return *found
	}
	return s.asked
}

// request prepares a GET of the collection, or of the object of a key, with the given options.
func (s *REST[T]) request(ctx context.Context, op string, o metav1.ListOptions, key string,
	onActivity func()) (request, error) {
	if s.invalid != nil {
		return request{}, s.fail(op, s.asked, fmt.Errorf("%w: %w", errOptions, s.invalid))
	}
	resource, err := s.resolved(ctx, op, o.Continue != "", onActivity)
	if err != nil {
		return request{}, err
	}
	if !o.Watch || o.SendInitialEvents != nil {
		s.listed.Store(&resource.Name)
	} else if listed := s.listed.Load(); listed != nil && *listed != resource.Name {
		return request{}, s.fail(op, resource, apierrors.NewResourceExpired(fmt.Sprintf(
			"the list was of %s: the kind is served under another name now", *listed)))
	}
	o.LabelSelector, o.FieldSelector = s.options.Labels, s.options.Fields
	if s.options.Tweak != nil {
		s.options.Tweak(&o)
	}
	namespace := s.options.Namespace
	if key != "" {
		namespace = narrow(&o, key)
	}
	query, err := queryparams.Convert(&o)
	if err != nil {
		return request{}, s.fail(op, resource, fmt.Errorf("its options cannot be sent: %w", err))
	}
	return request{
		op: op, resource: resource.String(), namespace: s.options.Namespace,
		path: resource.path(namespace), query: query,
		accept:            s.decoder.accept(op == "watch", s.client.jsonOnly),
		dropManagedFields: s.options.DropManagedFields,
		nextPage:          o.Continue != "", onActivity: onActivity, received: &s.received,
	}, nil
}

// narrow adds the name of a key to the selectors, and returns its namespace.
func narrow(o *metav1.ListOptions, key string) (namespace string) {
	namespace, name := splitKey(key)
	selector := fieldselector.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	o.FieldSelector = strings.TrimPrefix(o.FieldSelector+","+selector, ",")
	return namespace
}

// BytesReceived returns the number of bytes in the answers to lists and watches, without
// compression.
func (s *REST[T]) BytesReceived() uint64 { return s.received.Load() }

// refused handles an answer that is an error.
func (s *REST[T]) refused(ctx context.Context, r request, err error) error {
	resource := s.Resource()
	s.client.confirm(r, err, func(get served.Get) (bool, error) {
		return served.Resource(ctx, resource.GroupVersion().WithResource(resource.Name), get)
	})
	s.resetResource(ctx, err)
	return err
}

// resetResource forgets the answer of discovery or a mapper after an answer that contradicts it:
// the server has no such resource, or lists objects of another kind there. The resource may come
// back under another name or in another scope.
func (s *REST[T]) resetResource(ctx context.Context, err error) {
	_, isWrong := errors.AsType[*WrongObjectError](err)
	if (isWrong || apierrors.IsNotFound(err)) && s.acquire(ctx) == nil {
		s.doubt()
		<-s.lock
	}
}

// doubt makes the next request ask for the resource again.
func (s *REST[T]) doubt() {
	if s.asked.Name == "" {
		s.doubted = s.resource
	}
	s.resource = s.asked
}

// onWrongKind reports whether an object of another kind ends a stream: once, if only the server or
// a mapper knows which resource serves the kind.
func (s *REST[T]) onWrongKind() bool {
	return s.asked.Name == "" && s.wrongKind.CompareAndSwap(0, 1)
}

// Watch opens a stream.
func (s *REST[T]) Watch(ctx context.Context, o WatchOptions) (Stream[T], error) {
	options := metav1.ListOptions{
		Watch: true, AllowWatchBookmarks: true, ResourceVersion: o.Version, ShardSelector: o.ShardSelector,
	}
	if o.Timeout > 0 { // 0 seconds would be the server's choice
		options.TimeoutSeconds = new(max(int64(o.Timeout/time.Second), 1))
	}
	if o.SendInitialEvents {
		options.SendInitialEvents = new(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	r, err := s.request(ctx, "watch", options, "", o.OnActivity)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := s.client.get(ctx, r)
	if err != nil {
		err = s.refused(ctx, r, err)
		cancel()
		if o.SendInitialEvents && refusesStreamedLists(err) {
			err = fmt.Errorf("%w: %w", ErrStreamedListRefused, errors.Unwrap(err))
			return nil, r.fail(Answered, err)
		}
		return nil, err
	}
	if o.SendInitialEvents {
		s.learnKind(ctx, o.OnActivity)
	}
	stream, err := newRESTStream(s, r, resp, cancel)
	if err != nil {
		cancel()
		resp.Body.Close()
		return nil, r.fail(Decoding, err)
	}
	stream.onWrongKind = s.onWrongKind
	if o.SendInitialEvents {
		stream.filter = s.filterFor(o.Selects, o.IsCached, stream.form == tape.Protobuf)
	}
	stream.selection = s.filterFor(o.Selects, nil, stream.form == tape.Protobuf)
	return stream, nil
}

// refusesStreamedLists reports whether a server that does not know sendInitialEvents, or has
// it switched off, would answer so: it finds the parameters invalid (422), or their
// combination (400).
func refusesStreamedLists(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotAcceptable(err) || apierrors.IsMethodNotSupported(err)
}
