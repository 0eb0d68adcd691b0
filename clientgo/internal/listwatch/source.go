package listwatch

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

// Source lists and watches with a cache.ListerWatcher. Make one with [New].
type Source struct {
	lw       cache.ListerWatcherWithContext
	kind     kind
	options  Options
	versions *Versions
}

// Options are the options of a [Source].
type Options struct {
	// Example is an object of the type that is accepted; nil accepts all types.
	Example runtime.Object
	// Resource and Namespace describe the objects in recordings, as far as they are known.
	Resource  source.Resource
	Namespace string
	// Edit is called with each decoded object, before any other function reads it; nil leaves the
	// objects unchanged.
	Edit func(runtime.Object)
	// Report receives an error for each object that is dropped because it does not belong to
	// the collection.
	Report func(context.Context, error)
}

// New returns a source of the objects that lw yields. A ListerWatcher that declares that it
// cannot stream lists is a fake: its versions are not trusted.
func New(lw cache.ListerWatcher, o Options) (*Source, *Versions) {
	s := &Source{
		lw: cache.ToListerWatcherWithContext(lw), kind: kindOf(o.Example), options: o,
		versions: new(Versions),
	}
	if watchlist.DoesClientNotSupportWatchListSemantics(lw) {
		s.versions.declareFake()
	}
	return s, s.versions
}

// Collection describes the collection that the source reads, as far as it is known. Without a
// resource, the kind is that of the example.
func (s *Source) Collection() tape.Collection {
	of := s.options.Resource
	if of.Name == "" {
		gvk := registeredKind(s.options.Example)
		of.Group, of.Version, of.Kind = gvk.Group, gvk.Version, gvk.Kind
	}
	_, metadata := s.options.Example.(*metav1.PartialObjectMetadata)
	return tape.Collection{
		Group: of.Group, Version: of.Version, Resource: of.Name, Kind: of.Kind, Metadata: metadata,
		Namespace: s.options.Namespace,
	}
}

// List reads one page.
func (s *Source) List(ctx context.Context, o source.ListOptions) (source.Page[any], error) {
	options := metav1.ListOptions{Limit: o.Limit, Continue: o.Continue}
	if o.Continue == "" {
		options.ResourceVersion = o.Version
	}
	list, err := s.list(ctx, options)
	if err != nil {
		return source.Page[any]{}, source.Bound(err)
	}
	return s.page(ctx, list)
}

// list calls the lister on a goroutine of its own, because a lister that takes no context
// would delay the stop of the informer. Its panic becomes a panic of the caller.
func (s *Source) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	type result struct {
		list     runtime.Object
		err      error
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			done <- r
		}()
		r.list, r.err = s.lw.ListWithContext(ctx, o)
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-done:
		if r.panicked != nil {
			panic(r.panicked)
		}
		return r.list, r.err
	}
}

func (s *Source) page(ctx context.Context, list runtime.Object) (source.Page[any], error) {
	if list == nil {
		return source.Page[any]{}, fmt.Errorf("the lister returned neither a list nor an error")
	}
	head, err := meta.ListAccessor(list)
	if err != nil {
		return source.Page[any]{}, fmt.Errorf("the lister returned a %T, which is not a list: %w",
			list, err)
	}
	if err := checkTable(list); err != nil {
		return source.Page[any]{}, err
	}
	page := source.Page[any]{Version: head.GetResourceVersion(), Continue: head.GetContinue()}
	page.Items = make([]source.Item[any], 0, meta.LenList(list))
	if head.GetRemainingItemCount() != nil {
		page.Remaining = *head.GetRemainingItemCount()
	}
	if page.Version == "" {
		s.versions.declareFake()
	}
	err = meta.EachListItemWithAlloc(list, func(obj runtime.Object) error {
		page.Items = append(page.Items, s.item(ctx, obj))
		return nil
	})
	if err != nil {
		return source.Page[any]{}, fmt.Errorf("the lister returned a %T whose items cannot be read: %w",
			list, err)
	}
	s.versions.checkPage(&page)
	return page, nil
}

// item describes an object, after its edit. It reports an object that is dropped.
func (s *Source) item(ctx context.Context, obj runtime.Object) source.Item[any] {
	item := s.kind.item(obj)
	switch {
	case item.Err != nil:
		s.options.Report(ctx, item.Err)
	case s.options.Edit != nil:
		s.options.Edit(obj)
	}
	return item
}

// Watch opens a stream.
func (s *Source) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[any], error) {
	options := metav1.ListOptions{AllowWatchBookmarks: true, ResourceVersion: o.Version}
	if o.Timeout > 0 {
		options.TimeoutSeconds = new(int64(o.Timeout / time.Second))
	}
	if o.SendInitialEvents {
		options.SendInitialEvents, options.ResourceVersionMatch = new(true),
			metav1.ResourceVersionMatchNotOlderThan
	}
	w, err := s.lw.WatchWithContext(ctx, options)
	if err != nil {
		return nil, source.Bound(err)
	}
	if w == nil {
		return nil, fmt.Errorf("the watcher returned neither a watch nor an error")
	}
	initial := o.SendInitialEvents || unversioned(o.Version)
	return &stream{ctx: ctx, source: s, watch: w, version: o.Version, initial: initial}, nil
}

// unversioned reports whether a watch from the version begins with the current objects, in
// any order.
func unversioned(version string) bool { return version == "" || version == "0" }
