package listwatch

import (
	"context"

	"github.com/tidings-go/tidings/source"
)

// Untyped returns a source that yields the objects of another one as any.
func Untyped[T source.Object](of source.Source[T]) source.Source[any] { return untyped[T]{of} }

type untyped[T source.Object] struct{ of source.Source[T] }

// DecodingStats returns the counters of the source, zeros if it has none.
func (u untyped[T]) DecodingStats() source.DecodingStats {
	if of, ok := u.of.(interface{ DecodingStats() source.DecodingStats }); ok {
		return of.DecodingStats()
	}
	return source.DecodingStats{}
}

func (u untyped[T]) List(ctx context.Context, o source.ListOptions) (source.Page[any], error) {
	page, err := u.of.List(ctx, o)
	if err != nil {
		return source.Page[any]{}, err
	}
	items := make([]source.Item[any], len(page.Items))
	for i := range page.Items {
		items[i] = untypedItem(&page.Items[i])
	}
	return source.Page[any]{Items: items, Version: page.Version, Continue: page.Continue, Remaining: page.Remaining}, nil
}

func (u untyped[T]) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[any], error) {
	of, err := u.of.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return &untypedStream[T]{of: of}, nil
}

type untypedStream[T source.Object] struct {
	of    source.Stream[T]
	batch []source.Event[any]
}

func (s *untypedStream[T]) Close() error { return s.of.Close() }

func (s *untypedStream[T]) Next() ([]source.Event[any], error) {
	events, err := s.of.Next()
	if err != nil {
		return nil, err
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	for i := range events {
		s.batch = append(s.batch, source.Event[any]{Type: events[i].Type, Item: untypedItem(&events[i].Item)})
	}
	return s.batch, nil
}

func untypedItem[T source.Object](item *source.Item[T]) source.Item[any] {
	u := source.Item[any]{Key: item.Key, Version: item.Version, UID: item.UID, Err: item.Err}
	if item.Err == nil {
		u.Object = item.Object
	}
	return u
}
