package listwatch

import (
	"context"

	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

// Untyped returns a source that yields the objects of another source as any, after edit, which may
// be nil. Its counters and frames are those of the other source.
func Untyped[T source.Object](of source.Source[T], edit func(T)) source.Source[any] {
	u := untyped[T]{of, edit}
	if r, ok := of.(recorded); ok {
		return struct {
			untyped[T]
			recorded
		}{u, r}
	}
	return u
}

// recorded are the methods that a source.REST has beyond those of a source.Source.
type recorded interface {
	DecodingStats() source.DecodingStats
	BytesReceived() uint64
	Collection() tape.Collection
	DecodeFrame(frame []byte, form tape.Form) (any, error)
}

type untyped[T any] struct {
	of   source.Source[T]
	edit func(T)
}

// List reads one page.
func (u untyped[T]) List(ctx context.Context, o source.ListOptions) (source.Page[any], error) {
	page, err := u.of.List(ctx, o)
	if err != nil {
		return source.Page[any]{}, err
	}
	items := make([]source.Item[any], len(page.Items))
	for i := range page.Items {
		items[i] = u.item(&page.Items[i])
	}
	return source.Page[any]{
		Items: items, Version: page.Version, Continue: page.Continue, Remaining: page.Remaining,
		Sharded: page.Sharded,
	}, nil
}

// Watch opens a stream.
func (u untyped[T]) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[any], error) {
	of, err := u.of.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &untypedStream[T]{Stream: of, source: u}
	if f, ok := of.(framed); ok {
		return struct {
			*untypedStream[T]
			framed
		}{s, f}, nil
	}
	return s, nil
}

func (u untyped[T]) item(item *source.Item[T]) source.Item[any] {
	made := source.Item[any]{Key: item.Key, Version: item.Version, UID: item.UID, Err: item.Err}
	if item.Err == nil {
		if u.edit != nil {
			u.edit(item.Object)
		}
		made.Object = item.Object
	}
	return made
}

// framed are the methods that a stream of a source.REST has beyond those of a source.Stream.
type framed interface{ Frames() ([][]byte, tape.Form) }

type untypedStream[T any] struct {
	source.Stream[T]
	source untyped[T]
	batch  []source.Event[any]
}

// Next waits for events.
func (s *untypedStream[T]) Next() ([]source.Event[any], error) {
	events, err := s.Stream.Next()
	if err != nil {
		return nil, err
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	for i := range events {
		e := &events[i]
		made := source.Event[any]{Type: e.Type, Unselected: e.Unselected}
		if e.Unselected {
			made.Version = e.Version
		} else {
			made.Item = s.source.item(&e.Item)
		}
		s.batch = append(s.batch, made)
	}
	return s.batch, nil
}
