package tidings

import (
	"context"
	"iter"
)

// Events returns a handler as a loop: it yields an Added for every cached object
// and then every change, until ctx ends or the loop is left, which removes the handler. If the
// loop ends for another reason, the last pair has an error and no event: ErrStopped if the
// informer has stopped, ErrReleased if the handle was released. A loop that is slow falls
// behind as a handler does (see [PolicyConflateUpdates]).
//
//	for e, err := range pods.Events(ctx) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(e.Type, e.Key())
//	}
//
// The sequence may be used once.
func (i *Informer[T]) Events(ctx context.Context) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		left := make(chan struct{})
		defer close(left)
		events := make(chan Event[T])
		registration, err := i.AddHandler(HandlerFunc[T](func(e Event[T]) {
			select {
			case events <- e:
			case <-left:
			case <-ctx.Done():
			}
		}), HandlerOptions{Name: "events"})
		if err != nil {
			if ctx.Err() == nil {
				yield(Event[T]{}, err)
			}
			return
		}
		defer registration.Remove()
		for {
			select {
			case e := <-events:
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			case <-registration.Done():
				if ctx.Err() == nil {
					yield(Event[T]{}, i.endOfEvents())
				}
				return
			}
		}
	}
}

// endOfEvents returns why the handler of a loop was removed.
func (i *Informer[T]) endOfEvents() error {
	c, err := i.held()
	if err != nil {
		return err
	}
	return informerError(i.name, c.Over())
}
