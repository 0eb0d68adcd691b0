package reflector

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// errStreamIncomplete is a streamed list that ended before all of it was sent.
var errStreamIncomplete = errors.New("the streamed list ended before it was complete")

// streamList reads the collection as the beginning of a watch. What leads out of
// it: the end of the initial events (watch), a refusal (pageList), an error
// (backoff).
func (r *Reflector[T]) streamList(ctx context.Context) stateFunc[T] {
	r.beginList()
	err := r.openStream(ctx, source.WatchOptions{SendInitialEvents: true, IsCached: r.mayHold()})
	if errors.Is(err, source.ErrStreamedListRefused) {
		r.paged = true
		return r.pageList
	}
	if err != nil {
		if end := endingOf(err, false); end == refused || end == undecodable || end == expired {
			r.streamFails++ // what does not stream may list in pages
		}
		return r.streamFailed(ctx, err)
	}
	for {
		var events []source.Event[T]
		if events, err = r.stream.Next(); err != nil {
			err = fmt.Errorf("%w: %w", errStreamIncomplete, err)
			break
		}
		r.touch()
		for i, event := range events {
			if event.Type == source.InitialEventsEnd {
				return r.endStreamedList(ctx, event.Version, events[i+1:])
			}
			r.stageEvent(event)
		}
		r.countListed()
	}
	r.streamFails++
	return r.streamFailed(ctx, err)
}

// streamFailed decides what follows a streamed list that failed.
func (r *Reflector[T]) streamFailed(ctx context.Context, err error) stateFunc[T] {
	r.failed(ctx, StreamedList, err)
	if errors.Is(err, source.ErrSilent) && ctx.Err() == nil {
		r.noteError(err)
		r.recorder.log.Log(ctx, r.recorder.level, "listing in pages", "reason", source.Bound(err))
		r.mute = true
		return r.pageList
	}
	if r.o.PagesAfterFailure && ctx.Err() == nil && !unreachable(err) {
		return r.pageList
	}
	return r.retry(ctx, err, r.list())
}

// unreachable reports whether a failure says that another request would fail as well.
func unreachable(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// endStreamedList hands on the staged objects and goes on with the same stream.
func (r *Reflector[T]) endStreamedList(ctx context.Context, version string, rest []source.Event[T]) stateFunc[T] {
	// The events after the list share a slice with the ones before it, which the
	// hand-over does not touch.
	if err := r.endList(ctx, version, true); err != nil {
		return r.retry(ctx, err, r.list())
	}
	r.stream.endList()
	r.stream.at = version
	r.streamFails, r.muteStreams = 0, 0
	r.progressed, r.moved, r.fresh = true, true, false // the stream goes on as the watch
	r.recorder.enter(health.Watching)
	if err := r.handOn(ctx, rest); err != nil {
		return r.retry(ctx, err, r.watch)
	}
	return r.watch
}

// beginList forgets what an earlier list has staged.
func (r *Reflector[T]) beginList() {
	r.closeStream()
	r.staged = staged[T]{}
	r.reused = false
	r.recorder.change(func(h *health.Watch) {
		h.Listed = 0
		h.Lists++
	})
	r.recorder.enter(health.Listing)
}

func (r *Reflector[T]) countListed() {
	r.recorder.change(func(h *health.Watch) { h.Listed = r.staged.len() })
}

// endList hands on the staged objects as one Replace. Afterwards the watch starts
// at version.
//
// A consistent list that answers with a lower version than anything had before begins a
// new history, in which the versions of the old one mean nothing: if cached objects
// were staged in the place of listed ones, the list is read again without that.
func (r *Reflector[T]) endList(ctx context.Context, version string, consistent bool) error {
	r.staged.sweep()
	o := delta.ReplaceOptions{Stays: r.staged.stays}
	items := r.staged.take()
	r.lastList = len(items)
	order, comparable := delta.CompareDecimal(version, r.version)
	o.NewHistory = consistent && (r.rewound || comparable && order < 0 || r.isOlder(version, r.highest))
	if o.NewHistory && r.reused { // what was cached may be of the old history
		r.rewound = true
		return fmt.Errorf("%w: from %s to %s", errRewound, r.higher(r.version, r.highest), version)
	}
	highest := r.highestOf(version, items, o.NewHistory)
	if err := r.queue.Replace(ctx, r.o.Scope, version, items, o); err != nil {
		if errors.Is(err, delta.ErrOlder) { // than an earlier reflector has brought the queue to
			r.o.ConsistentFirstList, r.rewound = true, consistent
		}
		return err
	}
	r.version, r.resume, r.highest = version, version, highest
	r.lists++
	r.listed, r.fresh, r.rewound = true, true, false
	r.doubtful, r.emptied = false, false
	r.undecodable, r.fruitless, r.answering = false, 0, false
	r.touch()
	r.recorder.change(func(h *health.Watch) { h.Listed = 0 })
	r.heard()
	return nil
}

// highestOf returns the highest version that anything had, with a list.
func (r *Reflector[T]) highestOf(version string, items []delta.Item[T], newHistory bool) string {
	highest := version
	if !newHistory {
		highest = r.higher(r.highest, version)
	}
	for i := range items {
		highest = r.higher(highest, items[i].Version)
	}
	return highest
}

// higher returns b if it is known to be after a, or a is no version that can be compared.
func (r *Reflector[T]) higher(a, b string) string {
	if b != "" && !isNumber(a) || r.isOlder(a, b) {
		return b
	}
	return a
}

// stageEvent stages what an event of a streamed list says. Servers send only
// Added ones before the end, but a change in between is a legal thing to send.
func (r *Reflector[T]) stageEvent(event source.Event[T]) {
	switch event.Type {
	case source.Added:
		r.stage(event.Item)
		r.staged.settle(r.isOlder)
	case source.Modified:
		if !r.stage(event.Item) && event.Err == nil {
			r.staged.remove(event.Key) // it has left the collection
		}
		r.staged.settle(r.isOlder)
	case source.Deleted:
		r.staged.remove(event.Key)
	}
}

// stage adds an object to the running list. It reports whether the object belongs there.
func (r *Reflector[T]) stage(item source.Item[T]) (accepted bool) {
	if r.accept(item, false) != nil {
		return false
	}
	known, version, uid, ok := r.o.Known(item.Key)
	// Without a UID an equal version proves nothing: fakes have one for all.
	if ok && version != "" && version == item.Version && item.UID != "" && uid == item.UID && !r.rewound {
		item.Object = known
		r.reused = true
	} else if r.transform(&item) != nil {
		r.staged.stays = append(r.staged.stays, item.Key)
		return true
	}
	r.staged.decoded = append(r.staged.decoded, delta.Item[T]{Key: item.Key, Version: item.Version, UID: item.UID, Object: item.Object})
	return true
}
