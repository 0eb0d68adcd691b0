package listwatch

import (
	"context"
	"errors"

	"github.com/tidings-go/tidings/internal/tape"
	"github.com/tidings-go/tidings/source"
)

// Untyped returns a source that yields the objects of another one as any.
func Untyped[T source.Object](of source.Source[T]) source.Source[any] {
	return Convert(of, func(obj T, _ source.EventType) any { return obj })
}

// Convert returns a source of the results of convert, which receives each object with the type
// of its event. That of a listed object is source.Added.
func Convert[A, B any](of source.Source[A], convert func(A, source.EventType) B) source.Source[B] {
	return converted[A, B]{of, convert}
}

type converted[A, B any] struct {
	of      source.Source[A]
	convert func(A, source.EventType) B
}

// DecodingStats returns the counters of the source, zeros if it has none.
func (c converted[A, B]) DecodingStats() source.DecodingStats {
	if of, ok := c.of.(interface{ DecodingStats() source.DecodingStats }); ok {
		return of.DecodingStats()
	}
	return source.DecodingStats{}
}

// BytesReceived returns how many bytes the source has received, 0 if it does not count them.
func (c converted[A, B]) BytesReceived() uint64 {
	if of, ok := c.of.(interface{ BytesReceived() uint64 }); ok {
		return of.BytesReceived()
	}
	return 0
}

// Collection says what the source reads, as far as it is known.
func (c converted[A, B]) Collection() tape.Collection {
	if of, ok := c.of.(interface{ Collection() tape.Collection }); ok {
		return of.Collection()
	}
	return tape.Collection{}
}

// DecodeFrame returns the object in a frame, as the source decodes it.
func (c converted[A, B]) DecodeFrame(frame []byte, form tape.Form) (any, error) {
	of, ok := c.of.(interface {
		DecodeFrame([]byte, tape.Form) (any, error)
	})
	if !ok {
		return nil, errors.New("the source has no frames")
	}
	return of.DecodeFrame(frame, form)
}

func (c converted[A, B]) List(ctx context.Context, o source.ListOptions) (source.Page[B], error) {
	page, err := c.of.List(ctx, o)
	if err != nil {
		return source.Page[B]{}, err
	}
	items := make([]source.Item[B], len(page.Items))
	for i := range page.Items {
		items[i] = c.item(&page.Items[i], source.Added)
	}
	return source.Page[B]{
		Items: items, Version: page.Version, Continue: page.Continue, Remaining: page.Remaining,
		Sharded: page.Sharded,
	}, nil
}

func (c converted[A, B]) Watch(
	ctx context.Context, o source.WatchOptions) (source.Stream[B], error) {
	of, err := c.of.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return &convertedStream[A, B]{Stream: of, source: c}, nil
}

func (c converted[A, B]) item(item *source.Item[A], t source.EventType) source.Item[B] {
	made := source.Item[B]{Key: item.Key, Version: item.Version, UID: item.UID, Err: item.Err}
	if item.Err == nil {
		made.Object = c.convert(item.Object, t)
	}
	return made
}

type convertedStream[A, B any] struct {
	source.Stream[A]
	source converted[A, B]
	batch  []source.Event[B]
}

// Frames returns the frames of the events that Next has returned; none if the stream has none.
func (s *convertedStream[A, B]) Frames() ([][]byte, tape.Form) {
	if of, ok := s.Stream.(interface {
		Frames() ([][]byte, tape.Form)
	}); ok {
		return of.Frames()
	}
	return nil, 0
}

func (s *convertedStream[A, B]) Next() ([]source.Event[B], error) {
	events, err := s.Stream.Next()
	if err != nil {
		return nil, err
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	for i := range events {
		e := &events[i]
		if e.Unselected {
			unselected := source.Event[B]{Type: e.Type, Unselected: true}
			unselected.Version = e.Version
			s.batch = append(s.batch, unselected)
			continue
		}
		s.batch = append(s.batch, source.Event[B]{Type: e.Type, Item: s.source.item(&e.Item, e.Type)})
	}
	return s.batch, nil
}
