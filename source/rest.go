package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	defaultMaxFrameBytes = 32 << 20

	// defaultMaxListBytes is 2 GiB, or a quarter of what an int counts where that is less.
	defaultMaxListBytes = min(2<<30, math.MaxInt/4+1)
	// maxBatch bounds how many frames one Next decodes, so that a long burst
	// reaches the cache while it lasts.
	maxBatch = 256
)

// RESTOptions narrows what a [REST] source reads. Its zero value is the whole
// collection, with the default limits. With options that cannot be used, every List and
// Watch fails and says which.
type RESTOptions struct {
	// Namespace is the one namespace to read, "" for all.
	Namespace string
	// ClusterScoped says that Namespace is empty because objects of the resource have no
	// namespace, as far as the caller knows. The server is asked before each list and each
	// watch, which fail with [ErrNamespaced] when they have one by now.
	ClusterScoped bool
	// Labels and Fields are selectors in Kubernetes' syntax, "" for all objects.
	Labels, Fields string
	// Tweak changes the options of every list and every watch before they are sent,
	// selectors included; nil leaves them. It must not change what the caller of List
	// and Watch steers: versions, paging and the kind of watch.
	Tweak func(*metav1.ListOptions)
	// MaxFrameBytes bounds one frame of a watch; 0 means 32 MiB, the least is 1,000.
	MaxFrameBytes int
	// MaxListBytes bounds one page of a list: its bytes, and in the place of the bytes of an
	// object the size of its Go struct where that is larger. 0 means 2 GiB, where int has 32
	// bits 512 MiB; the least is 1,000.
	MaxListBytes int
	// ListBudget bounds what the pages of several sources have in memory at once; nil means one
	// of 4 GiB that all sources of the client have.
	ListBudget *Budget
	// Sharing says what decoded objects have in common; 0 means ShareAll. Go
	// structs that come in JSON share all or nothing.
	Sharing Sharing
	// Drop leaves fields out of the objects, as if they had never been set. A path names
	// fields as JSON does, joined by dots, as in "metadata.managedFields" or
	// "spec.containers.env": it goes through lists and ends at a field of any type, but
	// does not go into a map. Of objects held as maps, only what begins with "metadata" is
	// checked. Where a path cannot be left out, every List and Watch fails and says why.
	//
	// In protobuf these fields are not even decoded, nor are their bytes checked. An object
	// without them must not be given to an Update: the server would take it as a request
	// to remove them. Use a Patch.
	Drop []string
	// NoKind leaves metadata without its kind, which is PartialObjectMetadata whatever the
	// objects are, as client-go's metadata client does: the items of lists in JSON keep what
	// they come with. Other sources are not affected.
	NoKind bool
	// Table is what the objects share through; nil means one that all sources of the
	// client have.
	Table *Table
}

// tableOf returns the table that objects share through.
func (o RESTOptions) tableOf(c *Client) *Table {
	switch {
	case o.Table != nil:
		return o.Table
	case c != nil:
		return &c.table
	default:
		return new(Table)
	}
}

// budgetOf returns the budget that pages are read with.
func (o RESTOptions) budgetOf(c *Client) *Budget {
	if o.ListBudget == nil && c != nil {
		return &c.budget
	}
	return o.ListBudget
}

// REST is a [Source] that sends its own requests and decodes the answers.
type REST[T Object] struct {
	client  *Client
	decoder decoder[T]
	options RESTOptions
	// bookmarks decodes those where fields are left out, which may be the ones that say
	// what a bookmark means; otherwise it is nil.
	bookmarks decoder[T]
	invalid   error // says which of RESTOptions cannot be used, or nil
	// leastObject is what an object of a page takes at least, in bytes.
	leastObject int64
	// identifiable and identifiableInJSON say that objects in protobuf, or in JSON, can be
	// told apart before they are decoded.
	identifiable, identifiableInJSON bool

	buffer   atomic.Pointer[[]byte] // what a page was read with, for the one that follows it
	asked    Resource               // as it was given
	lock     chan struct{}          // guards resource; a channel, because discovery is waited for under it
	resource Resource               // asked, completed by discovery
}

// NewTyped returns a source of the objects of resource as the Go type that make
// returns, for example func() *corev1.Pod { return new(corev1.Pod) }, which several
// goroutines may call at once. Protobuf is used if the type can be read from it. resource.Kind is required.
func NewTyped[T Object](c *Client, resource Resource, make func() T, o RESTOptions) *REST[T] {
	if resource.isSecrets() {
		o.Sharing = ShareNothing // also in a Go type that does not say so
	}
	gvk, table := resource.GroupVersion().WithKind(resource.Kind), o.tableOf(c)
	s := newREST(c, resource, func() decoder[T] { return newTypedDecoder(gvk, make, table, o.Sharing) }, o)
	of := reflect.TypeOf(make())
	s.identifiable, s.identifiableInJSON = identifiable(of), identifiableInJSON(of)
	if of.Kind() == reflect.Pointer {
		s.leastObject += int64(of.Elem().Size())
	}
	return s
}

// NewDynamic returns a source of the objects of resource as maps.
func NewDynamic(c *Client, resource Resource, o RESTOptions) *REST[*unstructured.Unstructured] {
	if resource.isSecrets() {
		o.Sharing = ShareNothing
	}
	gvk, table := resource.GroupVersion().WithKind(resource.Kind), o.tableOf(c)
	s := newREST(c, resource, func() decoder[*unstructured.Unstructured] { return newDynamicDecoder(gvk, table, o.Sharing) }, o)
	s.identifiableInJSON = true
	return s
}

// NewMetadata returns a source of the metadata of the objects of resource. The
// server leaves out everything else.
func NewMetadata(c *Client, resource Resource, o RESTOptions) *REST[*metav1.PartialObjectMetadata] {
	if resource.isSecrets() {
		o.Sharing = ShareNothing // their annotations may hold what the Secrets hold
	}
	table := o.tableOf(c)
	s := newREST(c, resource, func() decoder[*metav1.PartialObjectMetadata] { return newMetadataDecoder(table, o.Sharing, !o.NoKind) }, o)
	s.identifiable, s.identifiableInJSON = true, true
	return s
}

// leastBytes is the least bound of a frame or a page: no object fits into less.
const leastBytes = 1000

// Check returns an error that names the first option that cannot be used, as a field of a
// struct that is called name. Drop is checked by the sources, which know the type. It is for
// what has these options among its own, to say so when they are given.
func (o RESTOptions) Check(name string) error {
	refuse := func(field string, value any, remedy string) error {
		return fmt.Errorf("%s.%s is %v: %s", name, field, value, remedy)
	}
	switch {
	case o.MaxFrameBytes != 0 && o.MaxFrameBytes < leastBytes:
		return refuse("MaxFrameBytes", o.MaxFrameBytes, fmt.Sprintf("give %d bytes or more, or 0 for 32 MiB", leastBytes))
	case o.MaxListBytes != 0 && o.MaxListBytes < leastBytes:
		return refuse("MaxListBytes", o.MaxListBytes, fmt.Sprintf("give %d bytes or more, or 0 for 2 GiB", leastBytes))
	case o.ListBudget != nil && o.ListBudget.MaxBytes < 0:
		return refuse("ListBudget.MaxBytes", o.ListBudget.MaxBytes, "give a number of bytes, or 0 for 4 GiB")
	case o.Sharing < ShareAll || o.Sharing > ShareNothing:
		return refuse("Sharing", int(o.Sharing), "use ShareAll, ShareStrings or ShareNothing")
	case o.ClusterScoped && o.Namespace != "":
		return refuse("ClusterScoped", true, fmt.Sprintf("leave Namespace, which is %q, empty", o.Namespace))
	}
	if _, err := labels.Parse(o.Labels); err != nil {
		return fmt.Errorf("%s.Labels %.100q: %w", name, o.Labels, err)
	}
	if _, err := fieldselector.ParseSelector(o.Fields); err != nil {
		return fmt.Errorf("%s.Fields %.100q: %w", name, o.Fields, err)
	}
	return nil
}

func newREST[T Object](c *Client, resource Resource, newDecoder func() decoder[T], o RESTOptions) *REST[T] {
	invalid := o.Check("RESTOptions")
	o.MaxFrameBytes = cmp.Or(o.MaxFrameBytes, defaultMaxFrameBytes)
	o.MaxListBytes = cmp.Or(o.MaxListBytes, defaultMaxListBytes)
	s := &REST[T]{
		client: c, decoder: newDecoder(), options: o, invalid: invalid, asked: resource, resource: resource,
		lock:        make(chan struct{}, 1),
		leastObject: int64(unsafe.Sizeof(Item[T]{})),
	}
	if len(o.Drop) == 0 {
		return s
	}
	s.bookmarks = newDecoder()
	if err := s.decoder.without(o.Drop); err != nil {
		s.invalid = fmt.Errorf("RESTOptions.Drop: %w", err)
	}
	return s
}

// resolved returns the resource, after asking the server for what a request
// needs to know of it. The next page of a list follows the one before.
func (s *REST[T]) resolved(ctx context.Context, follows bool, heard func()) (Resource, error) {
	fail := func(resource Resource, err error) (Resource, error) {
		return resource, &Error{Op: "list", Resource: resource.String(), Namespace: s.options.Namespace, Phase: Connecting, Err: err}
	}
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return fail(s.asked, context.Cause(ctx))
	}
	if s.options.ClusterScoped && !follows {
		s.resource = s.asked
		s.resource.Scope = ScopeUnknown
	}
	if s.resource.Name == "" || (s.resource.Scope == ScopeUnknown && s.options.ClusterScoped) || (s.resource.Scope == ScopeUnknown && s.options.Namespace != "") {
		resource, err := s.client.resolve(ctx, s.resource, heard, s.options.MaxListBytes)
		if err != nil {
			return s.resource, err
		}
		s.resource = resource
	}
	resource := s.resource
	var wrong error
	switch {
	case resource.Scope == ScopeCluster && s.options.Namespace != "":
		wrong = ErrWrongScope
	case resource.Scope == ScopeNamespaced && s.options.ClusterScoped:
		wrong = ErrNamespaced
	default:
		return resource, nil
	}
	s.resource = s.asked // its definition may come back with another scope
	return fail(resource, wrong)
}

// request prepares a GET of the collection with the given options.
func (s *REST[T]) request(ctx context.Context, op string, o metav1.ListOptions, heard func()) (request, error) {
	if s.invalid != nil {
		return request{}, &Error{Op: op, Resource: s.asked.String(), Namespace: s.options.Namespace, Phase: Connecting, Err: fmt.Errorf("%w: %w", errOptions, s.invalid)}
	}
	resource, err := s.resolved(ctx, o.Continue != "", heard)
	if err != nil {
		return request{}, err
	}
	o.LabelSelector, o.FieldSelector = s.options.Labels, s.options.Fields
	if s.options.Tweak != nil {
		s.options.Tweak(&o)
	}
	query, err := queryparams.Convert(&o)
	if err != nil {
		return request{}, &Error{Op: op, Resource: resource.String(), Namespace: s.options.Namespace, Phase: Connecting, Err: fmt.Errorf("its options cannot be sent: %w", err)}
	}
	return request{
		op: op, resource: resource.String(), namespace: s.options.Namespace,
		path: resource.path(s.options.Namespace), query: query, accept: s.decoder.accept(op == "watch", s.client.jsonOnly),
		follows: o.Continue != "", heard: heard,
	}, nil
}

// forget has what the server said of the resource be asked again, after an answer that
// it has no such resource: it may come back under another name or in another scope.
func (s *REST[T]) forget(err error) {
	if !apierrors.IsNotFound(err) {
		return
	}
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	s.resource = s.asked
}

// Watch opens a stream.
func (s *REST[T]) Watch(ctx context.Context, o WatchOptions) (Stream[T], error) {
	options := metav1.ListOptions{Watch: true, AllowWatchBookmarks: true, ResourceVersion: o.Version}
	if o.Timeout > 0 {
		options.TimeoutSeconds = new(max(int64(o.Timeout/time.Second), 1)) // 0 would be the server's choice
	}
	if o.SendInitialEvents {
		options.SendInitialEvents, options.ResourceVersionMatch = new(true), metav1.ResourceVersionMatchNotOlderThan
	}
	r, err := s.request(ctx, "watch", options, o.Heard)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := s.client.get(ctx, r)
	if err != nil {
		cancel()
		s.forget(err)
		if o.SendInitialEvents && refusesStreamedLists(err) {
			return nil, r.fail(Answered, fmt.Errorf("%w: %w", ErrStreamedListRefused, errors.Unwrap(err)))
		}
		return nil, err
	}
	stream, err := newRESTStream(s, r, resp, cancel)
	if err != nil {
		cancel()
		resp.Body.Close()
		return nil, r.fail(Decoding, err)
	}
	if o.SendInitialEvents {
		stream.asker = s.askerFor(o.Held, stream.protobuf)
	}
	return stream, nil
}

// refusesStreamedLists reports whether a server that does not know
// sendInitialEvents, or has it switched off, would answer so: it finds the
// parameters invalid (422), or their combination (400).
func refusesStreamedLists(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotAcceptable(err) || apierrors.IsMethodNotSupported(err)
}
