package source

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// Watch answers a request for a watch.
func (r *Replayed[T]) Watch(ctx context.Context, o WatchOptions) (Stream[T], error) {
	active(o.OnActivity)
	if r.isOver(o.SendInitialEvents) {
		return nil, r.request("watch").fail(Connecting, r.waitForReader(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &replayedStream[T]{Replayed: r, ctx: ctx, cancel: cancel, o: o}
	record := r.peek()
	recorded := record != nil && record.Kind == tape.Watch
	if !recorded || record.More.Request.SendInitialEvents != o.SendInitialEvents {
		r.countUnplanned()
		if err := r.skipToWatch(); err != nil {
			cancel()
			return nil, r.request("watch").fail(Decoding, err)
		}
		if o.SendInitialEvents {
			s.listPresent()
		}
		if record = r.peek(); record == nil || record.Kind != tape.Watch {
			if record != nil {
				r.from = momentOf(record)
			}
			s.began = r.from
			return s, nil
		}
	}
	r.next++
	r.from = momentOf(record)
	answer := r.peek()
	if answer == nil || answer.Kind != tape.Begun && answer.Kind != tape.Failed {
		defer cancel()
		return nil, r.request("watch").fail(Connecting, r.waitForReader(ctx))
	}
	var outage time.Duration
	if r.isChecked() {
		outage = r.contact.atLeast(leastOutage, answer.At)
	}
	if err := r.answer(ctx, "watch", answer, outage); err != nil {
		cancel()
		return nil, err
	}
	s.began, r.contact = momentOf(answer), momentOf(answer)
	s.listing = record.More.Request.SendInitialEvents && o.SendInitialEvents
	active(o.OnActivity)
	return s, nil
}

// isChecked reports whether the recorded informer checked the server's version when a watch had
// begun, of which the next record is the answer.
func (r *Replayed[T]) isChecked() bool {
	if r.next+1 >= len(r.track.Records) {
		return false
	}
	then := &r.track.Records[r.next+1]
	return then.Kind == tape.List && then.More.Request.Limit == 1
}

// skipToWatch skips lists up to the next watch, or to events of a watch that goes on. The objects
// of the lists count as known.
func (r *Replayed[T]) skipToWatch() error {
	var asked *tape.Request
	for ; r.next < len(r.track.Records); r.next++ {
		switch record := r.peek(); record.Kind {
		case tape.Watch, tape.Event, tape.Listed:
			return nil
		case tape.List:
			asked = record.More.Request
		case tape.Page:
			items, err := r.items(record.Data)
			if err != nil {
				return err
			}
			if asked != nil {
				r.noteList(items, record, asked)
			}
		}
	}
	return nil
}

// replayedStream is a watch of a replay.
type replayedStream[T Object] struct {
	*Replayed[T]
	ctx     context.Context
	cancel  context.CancelFunc
	o       WatchOptions
	began   moment
	listing bool       // a recorded list is being streamed
	pending []Event[T] // that Next returns first
	batch   []Event[T]
	ended   error
}

// listPresent makes the stream begin with the objects as they are at this place.
func (s *replayedStream[T]) listPresent() {
	for _, item := range s.present(s.o.IsCached).Items {
		s.pending = append(s.pending, Event[T]{Type: Added, Item: item})
	}
	end := Event[T]{Type: InitialEventsEnd}
	end.Version = s.version
	s.pending = append(s.pending, end)
}

// Close ends the stream.
func (s *replayedStream[T]) Close() error {
	s.cancel()
	if record := s.peek(); record != nil && record.Kind == tape.Closed && s.ended == nil {
		s.next++
	}
	return nil
}

// Next returns the events that were read together.
func (s *replayedStream[T]) Next() ([]Event[T], error) {
	if s.ended != nil {
		return nil, s.ended
	}
	if events := s.pending; len(events) > 0 {
		s.pending = nil
		return events, nil
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	for len(s.batch) == 0 {
		if s.ended = s.read(); s.ended != nil {
			return nil, s.ended
		}
	}
	return s.batch, nil
}

// read plays the records that were read together, or the end of the stream.
func (s *replayedStream[T]) read() error {
	record := s.peek()
	switch {
	case record == nil:
		return s.request("watch").fail(Streaming, s.waitForReader(s.ctx))
	case record.Kind == tape.Failed:
		err := s.answer(s.ctx, "watch", record, s.began.atLeast(leastWatch, record.At))
		if err == io.EOF {
			s.contact = momentOf(record)
		}
		return err
	}
	if err := wait(s.ctx, s.from.left(record.At, s.speed)); err != nil {
		return s.request("watch").fail(Streaming, err)
	}
	if record.Kind != tape.Event && record.Kind != tape.Listed {
		s.unplanned.Add(1) // the recorded reader closed the watch here
		return io.EOF
	}
	active(s.o.OnActivity)
	s.contact = momentOf(record)
	for at := record.At; record != nil && record.At == at; record = s.peek() {
		if record.Kind != tape.Event && record.Kind != tape.Listed {
			break
		}
		s.next++
		if err := s.play(record); err != nil {
			return s.request("watch").fail(Decoding, err)
		}
	}
	return nil
}

func (s *replayedStream[T]) play(record *tape.Record) error {
	if record.Kind == tape.Event {
		event, err := s.event(record)
		if err != nil {
			return err
		}
		s.note(&event)
		if event.Type == InitialEventsEnd {
			s.endList(&event)
		}
		s.batch = append(s.batch, event)
		return nil
	}
	items, err := s.items(record.Data)
	if err != nil {
		return err
	}
	for _, item := range items {
		event := Event[T]{Type: Added, Item: item}
		known, ok := s.objects[item.Key]
		s.note(&event)
		switch {
		case s.listing && s.listed == nil:
			s.listed = map[string]Item[T]{}
		case !s.listing && ok && known.Version == item.Version && known.UID == item.UID:
			continue // the watch was not asked for a list
		}
		if s.listing && item.Key != "" {
			s.listed[item.Key] = item
			if s.o.IsCached != nil && s.o.IsCached(item.Key, item.Version, item.UID) {
				continue
			}
		}
		s.batch = append(s.batch, event)
	}
	return nil
}

// endList makes the objects of a streamed list the present ones.
func (s *replayedStream[T]) endList(end *Event[T]) {
	if !s.listing {
		end.Type = Bookmark // the watch was not asked for a list
		return
	}
	if s.objects = s.listed; s.objects == nil {
		s.objects = map[string]Item[T]{}
	}
	s.listing, s.listed = false, nil
}

func (s *replayedStream[T]) note(e *Event[T]) {
	if e.Version != "" {
		s.version = e.Version
	}
	switch {
	case e.Key == "":
	case e.Type == Deleted:
		delete(s.objects, e.Key)
	default:
		s.objects[e.Key] = e.Item
	}
}

func (s *replayedStream[T]) event(record *tape.Record) (Event[T], error) {
	event := Event[T]{Type: EventType(record.Type)}
	event.Key, event.Version = record.Key, record.Version
	var err error
	switch {
	case event.Type == Bookmark || event.Type == InitialEventsEnd:
	case record.Form == 0 && record.Key == "" && !record.LeftOut:
		event.Unselected = true
	case record.LeftOut:
		identity := tape.Object{
			Key: record.Key, Version: record.Version, UID: s.objects[record.Key].UID,
		}
		event.Item, err = s.item(identity)
	case record.Form == tape.Protobuf || record.Form == tape.JSON:
		return s.rest.streamOf(record.Form).decode(record.Data)
	case record.Form == tape.Encoded:
		var obj T
		obj, err = s.rest.decoder.json(record.Data, schema.GroupVersionKind{})
		event.Item, err = itemOf(obj, err, record.Data, false, s.rest.decoder.wants())
	default:
		var items []Item[T]
		if items, err = s.items(record.Data); err == nil && len(items) != 1 {
			err = fmt.Errorf("the recording has %d objects of an event of %s", len(items),
				BoundText(record.Key))
		}
		if err == nil {
			event.Item = items[0]
		}
	}
	return event, err
}
