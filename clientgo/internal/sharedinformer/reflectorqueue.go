package sharedinformer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// tagged is an object of a list or an event, and whether that event was an addition. The
// queues of client-go distinguish additions from updates.
type tagged struct {
	object any
	added  bool
}

func tag(obj any, t source.EventType) tagged { return tagged{obj, t == source.Added} }

// reflectorQueue passes lists and changes from a reflector to a queue of client-go. A change
// that the queue refuses is reported, and the watch goes on, as in client-go.
type reflectorQueue struct {
	ctx     context.Context
	reports *reporter
	queue   cache.Queue
}

func (q reflectorQueue) Push(_ context.Context, _, version string,
	changes []delta.Event[tagged]) error {
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

func (q reflectorQueue) Replace(_ context.Context, _, version string, items []delta.Item[tagged],
	_ delta.ReplaceOptions) error {
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
