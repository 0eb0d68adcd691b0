package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"

	"github.com/tidings-go/tidings/source/dedup"
)

const (
	defaultMaxFrameBytes = 32 << 20
	defaultMaxListBytes  = 2 << 30
	// maxBatch bounds how many frames one Next decodes, so that a long burst
	// reaches the cache while it lasts.
	maxBatch = 256
)

// RESTOptions narrows what a [REST] source reads. Its zero value is the whole
// collection, with the default limits.
type RESTOptions struct {
	// Namespace is the one namespace to read, "" for all.
	Namespace string
	// Labels and Fields are selectors in Kubernetes' syntax, "" for all objects.
	Labels, Fields string
	// Tweak changes the options of every list and every watch before they are sent,
	// selectors included; nil leaves them. It must not change what the caller of List
	// and Watch steers: versions, paging and the kind of watch.
	Tweak func(*metav1.ListOptions)
	// MaxFrameBytes bounds one frame of a watch; 0 means 32 MiB.
	MaxFrameBytes int
	// MaxListBytes bounds one page of a list; 0 means 2 GiB.
	MaxListBytes int
	// Sharing says what decoded objects have in common; 0 means ShareAll. It is of
	// no consequence to Go structs that come in JSON, which share nothing.
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
	// Table is what the objects share through; nil means one that all sources of the
	// client have.
	Table *dedup.Table
}

// tableOf returns the table that objects share through.
func (o RESTOptions) tableOf(c *Client) *dedup.Table {
	switch {
	case o.Table != nil:
		return o.Table
	case c != nil:
		return &c.table
	default:
		return new(dedup.Table)
	}
}

// REST is a [Source] that sends its own requests and decodes the answers.
type REST[T Object] struct {
	client  *Client
	decoder decoder[T]
	options RESTOptions
	// bookmarks decodes those where fields are left out, which may be the ones that say
	// what a bookmark means; otherwise it is nil.
	bookmarks decoder[T]
	invalid   error // RESTOptions.Drop, or nil

	asked    Resource   // as it was given
	mu       sync.Mutex // guards resource, which the first request completes
	resource Resource
}

// NewTyped returns a source of the objects of resource as the Go type that make
// returns, for example func() *corev1.Pod { return new(corev1.Pod) }. Protobuf is
// used if the type can be read from it. resource.Kind is required.
func NewTyped[T Object](c *Client, resource Resource, make func() T, o RESTOptions) *REST[T] {
	gvk, table := resource.GroupVersion().WithKind(resource.Kind), o.tableOf(c)
	return newREST(c, resource, func() decoder[T] { return newTypedDecoder(gvk, make, table, o.Sharing) }, o)
}

// NewDynamic returns a source of the objects of resource as maps.
func NewDynamic(c *Client, resource Resource, o RESTOptions) *REST[*unstructured.Unstructured] {
	if resource.isSecrets() {
		o.Sharing = ShareNothing
	}
	gvk, table := resource.GroupVersion().WithKind(resource.Kind), o.tableOf(c)
	return newREST(c, resource, func() decoder[*unstructured.Unstructured] { return newDynamicDecoder(gvk, table, o.Sharing) }, o)
}

// NewMetadata returns a source of the metadata of the objects of resource. The
// server leaves out everything else.
func NewMetadata(c *Client, resource Resource, o RESTOptions) *REST[*metav1.PartialObjectMetadata] {
	if resource.isSecrets() {
		o.Sharing = ShareNothing // their annotations may hold what the Secrets hold
	}
	table := o.tableOf(c)
	return newREST(c, resource, func() decoder[*metav1.PartialObjectMetadata] { return newMetadataDecoder(table, o.Sharing) }, o)
}

func newREST[T Object](c *Client, resource Resource, newDecoder func() decoder[T], o RESTOptions) *REST[T] {
	if o.MaxFrameBytes == 0 {
		o.MaxFrameBytes = defaultMaxFrameBytes
	}
	if o.MaxListBytes == 0 {
		o.MaxListBytes = defaultMaxListBytes
	}
	s := &REST[T]{client: c, decoder: newDecoder(), options: o, asked: resource, resource: resource}
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
// needs to know of it.
func (s *REST[T]) resolved(ctx context.Context) (Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resource.Name == "" || (s.resource.Scope == ScopeUnknown && s.options.Namespace != "") {
		resource, err := s.client.Resolve(ctx, s.resource)
		if err != nil {
			return s.resource, err
		}
		s.resource = resource
	}
	if s.resource.Scope == ScopeCluster && s.options.Namespace != "" {
		return s.resource, &Error{Op: "list", Resource: s.resource.String(), Namespace: s.options.Namespace, Phase: Connecting, Err: ErrWrongScope}
	}
	return s.resource, nil
}

// request prepares a GET of the collection with the given options.
func (s *REST[T]) request(ctx context.Context, op string, o metav1.ListOptions) (request, error) {
	if s.invalid != nil {
		return request{}, &Error{Op: op, Resource: s.asked.String(), Namespace: s.options.Namespace, Phase: Connecting, Err: s.invalid}
	}
	resource, err := s.resolved(ctx)
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
		follows: o.Continue != "",
	}, nil
}

// forget has what the server said of the resource be asked again, after an answer that
// it has no such resource: it may come back under another name or in another scope.
func (s *REST[T]) forget(err error) {
	if !apierrors.IsNotFound(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resource = s.asked
}

// List reads one page.
func (s *REST[T]) List(ctx context.Context, o ListOptions) (Page[T], error) {
	if s.client.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.client.timeout)
		defer cancel()
	}
	options := metav1.ListOptions{Limit: o.Limit, Continue: o.Continue}
	if o.Continue == "" && o.Version != "" {
		options.ResourceVersion, options.ResourceVersionMatch = o.Version, metav1.ResourceVersionMatchNotOlderThan
	}
	r, err := s.request(ctx, "list", options)
	if err != nil {
		return Page[T]{}, err
	}
	resp, err := s.client.get(ctx, r)
	if err != nil {
		s.forget(err)
		return Page[T]{}, err
	}
	body, err := readBody(resp.Body, s.options.MaxListBytes)
	if err != nil {
		return Page[T]{}, r.fail(Decoding, err)
	}
	page, err := s.decodePage(mediaTypeOf(resp), body)
	if err != nil {
		return Page[T]{}, r.fail(Decoding, err)
	}
	return page, nil
}

// decodePage takes a list apart and decodes its items.
func (s *REST[T]) decodePage(mediaType string, body []byte) (Page[T], error) {
	var page Page[T]
	switch mediaType {
	case protobufType:
		e, err := openEnvelope(body)
		if err != nil {
			return page, err
		}
		if want := s.decoder.wants().Kind + "List"; string(e.kind) != want {
			return page, &WrongObjectError{Got: kindName(e.groupVersionKind()), Want: want}
		}
		head, err := openList(e.raw, func(message []byte) error {
			obj, err := s.decoder.protobuf(message)
			return addItem(&page, obj, err)
		})
		page.Version, page.Continue, page.Remaining = head.version, head.token, head.remaining
		return page, err
	case jsonType:
		list, err := openJSONList(body)
		if err != nil {
			return page, fmt.Errorf("%w list in JSON: %w, received %s", ErrMalformed, err, shown(body))
		}
		if !strings.HasSuffix(list.Kind, "List") {
			return page, &WrongObjectError{Got: kindName(list.GroupVersionKind()), Want: "a list of " + kindName(s.decoder.wants())}
		}
		page.Version, page.Continue = list.ResourceVersion, list.Continue
		if list.RemainingItemCount != nil {
			page.Remaining = *list.RemainingItemCount
		}
		page.Items = make([]Item[T], 0, len(list.Items))
		for _, raw := range list.Items {
			obj, err := s.decoder.json(raw, true)
			if err := addItem(&page, obj, err); err != nil {
				return page, err
			}
		}
		return page, nil
	default:
		return page, fmt.Errorf("%w: the list came as %q, which was not asked for", ErrMalformed, mediaType)
	}
}

// addItem appends a decoded object to a page, or an item that is to be dropped.
func addItem[T Object](page *Page[T], obj T, err error) error {
	item, err := itemOrWrong(obj, err)
	if err == nil {
		page.Items = append(page.Items, item)
	}
	return err
}

// itemOrWrong describes a decoded object. An object of another kind is an item
// that says so; any other error stays one.
func itemOrWrong[T Object](obj T, err error) (Item[T], error) {
	if err == nil {
		return ItemOf(obj), nil
	}
	if _, wrong := errors.AsType[*WrongObjectError](err); wrong {
		return Item[T]{Err: err}, nil
	}
	return Item[T]{}, err
}

// Watch opens a stream.
func (s *REST[T]) Watch(ctx context.Context, o WatchOptions) (Stream[T], error) {
	options := metav1.ListOptions{Watch: true, AllowWatchBookmarks: true, ResourceVersion: o.Version}
	if o.Timeout > 0 {
		options.TimeoutSeconds = new(int64(o.Timeout / time.Second))
	}
	if o.SendInitialEvents {
		options.SendInitialEvents, options.ResourceVersionMatch = new(true), metav1.ResourceVersionMatchNotOlderThan
	}
	r, err := s.request(ctx, "watch", options)
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
	return stream, nil
}

// refusesStreamedLists reports whether a server that does not know
// sendInitialEvents, or has it switched off, would answer so: it finds the
// parameters invalid (422), or their combination (400).
func refusesStreamedLists(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotAcceptable(err) || apierrors.IsMethodNotSupported(err)
}

// restStream is a running watch.
type restStream[T Object] struct {
	decoder   decoder[T]
	bookmarks decoder[T] // nil for the one above
	request   request
	protobuf  bool
	// apiVersion and kind are what the decoder wants, as it is on the wire.
	apiVersion, kind string
	frames           *frames
	body             io.Closer
	cancel           context.CancelFunc
	batch            []Event[T]
	pending          error // what ended the stream after the events of batch
}

func newRESTStream[T Object](s *REST[T], r request, resp *http.Response, cancel context.CancelFunc) (*restStream[T], error) {
	stream := &restStream[T]{decoder: s.decoder, bookmarks: s.bookmarks, request: r, body: resp.Body, cancel: cancel}
	stream.apiVersion, stream.kind = s.decoder.wants().ToAPIVersionAndKind()
	switch mediaType := mediaTypeOf(resp); mediaType {
	case protobufType:
		stream.protobuf = true
		stream.frames = newFrames(resp.Body, lengthDelimited{}, s.options.MaxFrameBytes)
	case jsonType:
		stream.frames = newFrames(resp.Body, &jsonObjects{}, s.options.MaxFrameBytes)
	default:
		return nil, fmt.Errorf("%w: the watch came as %q, which was not asked for", ErrMalformed, mediaType)
	}
	return stream, nil
}

// Close ends the request.
func (s *restStream[T]) Close() error {
	s.cancel()
	return s.body.Close()
}

// Next waits for one frame and decodes every whole frame that follows it.
func (s *restStream[T]) Next() ([]Event[T], error) {
	if s.pending != nil {
		return nil, s.pending
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	for len(s.batch) < maxBatch {
		frame, err := s.frames.next(len(s.batch) == 0)
		if err == nil && frame == nil {
			return s.batch, nil
		}
		var event Event[T]
		if err == nil {
			event, err = s.decode(frame)
		}
		if err != nil {
			s.pending = s.describe(err)
			if len(s.batch) > 0 {
				return s.batch, nil
			}
			return nil, s.pending
		}
		s.batch = append(s.batch, event)
	}
	return s.batch, nil
}

// describe says in which phase the stream failed; its orderly end stays io.EOF.
func (s *restStream[T]) describe(err error) error {
	if err == io.EOF {
		return err
	}
	phase := Streaming
	for _, decoding := range []error{ErrMalformed, ErrUnknownEvent, ErrFrameTooLarge} {
		if errors.Is(err, decoding) {
			phase = Decoding
		}
	}
	return s.request.fail(phase, err)
}

// decode makes an event of a frame. An ERROR event is the error it carries.
func (s *restStream[T]) decode(frame []byte) (Event[T], error) {
	var event Event[T]
	name, object, err := s.open(frame)
	if err != nil {
		return event, err
	}
	decoder := s.decoder
	switch string(name) {
	case "ADDED":
		event.Type = Added
	case "MODIFIED":
		event.Type = Modified
	case "DELETED":
		event.Type = Deleted
	case "BOOKMARK":
		event.Type = Bookmark
		if s.bookmarks != nil {
			decoder = s.bookmarks
		}
	case "ERROR":
		return event, s.decodeError(object)
	default:
		return event, fmt.Errorf("%w %q", ErrUnknownEvent, name)
	}
	event.Item, err = itemOrWrong(s.decodeObject(decoder, object))
	if err == nil && event.Type == Bookmark {
		return bookmark(event)
	}
	return event, err
}

// open separates the type of an event from its object.
func (s *restStream[T]) open(frame []byte) (name, object []byte, err error) {
	if s.protobuf {
		return openWatchEvent(frame)
	}
	if name, object, ok := cutEvent(frame); ok {
		return name, object, nil
	}
	var event jsonWatchEvent
	if err := unmarshalJSON(frame, &event); err != nil {
		return nil, nil, fmt.Errorf("%w watch event in JSON: %w, received %s", ErrMalformed, err, shown(frame))
	}
	return []byte(event.Type), event.Object, nil
}

func (s *restStream[T]) decodeObject(d decoder[T], data []byte) (T, error) {
	if !s.protobuf {
		return d.json(data, false)
	}
	var none T
	e, err := openEnvelope(data)
	if err != nil {
		return none, err
	}
	if !e.describes(s.apiVersion, s.kind) {
		if got := e.groupVersionKind(); got != d.wants() {
			return none, &WrongObjectError{Got: kindName(got), Want: kindName(d.wants())}
		}
	}
	return d.protobuf(e.raw)
}

// decodeError makes an error of the Status in an ERROR event.
func (s *restStream[T]) decodeError(object []byte) error {
	mediaType := jsonType
	if s.protobuf {
		mediaType = protobufType
	}
	var status metav1.Status
	if err := unmarshalStatus(mediaType, object, &status); err != nil {
		return fmt.Errorf("%w: an ERROR event whose status cannot be read: %w, received %s", ErrMalformed, err, shown(object))
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// bookmark reduces an event to its version.
func bookmark[T Object](event Event[T]) (Event[T], error) {
	if event.Err != nil {
		return event, fmt.Errorf("%w bookmark: %w", ErrMalformed, event.Err)
	}
	reduced := Event[T]{Type: Bookmark, Item: Item[T]{Version: event.Version}}
	if event.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		reduced.Type = InitialEventsEnd
	}
	return reduced, nil
}
