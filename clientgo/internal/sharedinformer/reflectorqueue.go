package sharedinformer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// tagged is an object that knows whether the server called it added or modified, which
// queues of client-go pass on.
type tagged struct {
	object any
	added  bool
}

// taggedSource tags what a source yields.
type taggedSource struct{ of source.Source[any] }

func (s taggedSource) List(ctx context.Context, o source.ListOptions) (source.Page[tagged], error) {
	page, err := s.of.List(ctx, o)
	if err != nil {
		return source.Page[tagged]{}, err
	}
	items := make([]source.Item[tagged], len(page.Items))
	for i := range page.Items {
		items[i] = tag(&page.Items[i], true)
	}
	return source.Page[tagged]{Items: items, Version: page.Version, Continue: page.Continue, Remaining: page.Remaining}, nil
}

func (s taggedSource) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[tagged], error) {
	stream, err := s.of.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return taggedStream{stream}, nil
}

type taggedStream struct{ of source.Stream[any] }

func (s taggedStream) Close() error { return s.of.Close() }

func (s taggedStream) Next() ([]source.Event[tagged], error) {
	events, err := s.of.Next()
	if err != nil {
		return nil, err
	}
	batch := make([]source.Event[tagged], len(events))
	for i := range events {
		batch[i] = source.Event[tagged]{Type: events[i].Type, Item: tag(&events[i].Item, events[i].Type == source.Added)}
	}
	return batch, nil
}

func tag(item *source.Item[any], added bool) source.Item[tagged] {
	return source.Item[tagged]{Key: item.Key, Version: item.Version, UID: item.UID, Err: item.Err, Object: tagged{item.Object, added}}
}

// reflectorQueue hands what the reflector brings to a queue of client-go. What that
// refuses is reported, as client-go's reflector does: the watch goes on.
type reflectorQueue struct {
	ctx     context.Context
	reports *reporter
	queue   cache.Queue
}

func (q reflectorQueue) Push(_ context.Context, _, version string, changes []delta.Event[tagged]) error {
	for i := range changes {
		c := &changes[i]
		var err error
		switch {
		case c.Type == delta.Delete:
			err = q.queue.Delete(c.Object.object)
		case c.Object.added:
			err = q.queue.Add(c.Object.object)
		default:
			err = q.queue.Update(c.Object.object)
		}
		if err != nil {
			q.reports.report(q.ctx, err, "A queue refused a change", "key", source.BoundText(c.Key))
		}
	}
	q.reached(version)
	return nil
}

func (q reflectorQueue) Replace(_ context.Context, _, version string, items []delta.Item[tagged], _ delta.ReplaceOptions) error {
	list := make([]any, len(items))
	for i := range items {
		list[i] = items[i].Object.object
	}
	return q.queue.Replace(list, version)
}

func (q reflectorQueue) Bookmark(_ context.Context, _, version string) error {
	if store, ok := q.queue.(cache.ReflectorBookmarkStore); ok {
		if err := store.Bookmark(version); err != nil {
			q.reports.report(q.ctx, err, "A queue refused a bookmark", "version", version)
		}
	}
	q.reached(version)
	return nil
}

func (q reflectorQueue) reached(version string) {
	if updater, ok := q.queue.(cache.ResourceVersionUpdater); ok {
		updater.UpdateResourceVersion(version)
	}
}
