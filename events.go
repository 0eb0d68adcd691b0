package tidings

import (
	"context"
	"iter"
)

// Events returns a handler as a loop: it yields an Added for every cached object
// and then every change, until ctx ends, the informer stops, or the loop is left,
// which removes the handler. A loop that is slow falls behind as a handler does
// (see [ConflateUpdates]). On an informer that cannot take a handler the loop ends
// at once; AddHandler says why.
//
// The sequence may be used once.
func (i *Informer[T]) Events(ctx context.Context) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		events := make(chan Event[T])
		registration, err := i.AddHandler(HandlerFunc[T](func(e Event[T]) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		}), HandlerOptions{Name: "events"})
		if err != nil {
			return
		}
		defer registration.Remove()
		for {
			select {
			case e := <-events:
				if !yield(e) {
					return
				}
			case <-ctx.Done():
				return
			case <-registration.Done():
				return
			}
		}
	}
}
