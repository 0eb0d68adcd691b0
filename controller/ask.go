package controller

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/lead/written"
)

// mostAsked is the number of keys about which the server is asked at a time: the answers about some may
// not come.
const mostAsked = 256

// askServer asks the server about writes that the caches do not show.
func (r *run[T]) askServer() {
	var asking sync.WaitGroup
	defer asking.Wait()
	free := make(chan struct{}, mostAsked)
	for {
		if key, ok := r.barrier.toAsk(); ok {
			free <- struct{}{}
			asking.Go(func() {
				defer func() { <-free }()
				r.askAbout(r.ctx, key)
			})
			continue
		}
		select {
		case <-r.ctx.Done():
			return
		case <-r.barrier.asks:
		}
	}
}

// askAbout asks about the writes of a key that have not shown for too long.
func (r *run[T]) askAbout(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, askAfter)
	defer cancel()
	answers := r.barrier.questions(key)
	for i := range answers {
		a := &answers[i]
		waited := r.barrier.now() - a.at
		a.Answer, a.err = a.Ask(ctx, r.c.o.Guard, a.by, a.by.GVR(), waited)
	}
	for _, a := range answers {
		if namespace, _ := written.SplitKey(a.Object); a.Listing {
			a.by.AwaitVersion(ctx, namespace, a.Version)
		}
	}
	if r.barrier.settle(key, answers) {
		r.queue.Wake(key)
		return
	}
	for _, a := range answers {
		if a.err == nil || r.ctx.Err() != nil {
			continue
		}
		if more, ok := r.c.unasked.Allow(); ok {
			r.c.o.Logger.Warn("a key is held back, as the server cannot be asked about a write of it",
				append([]any{"key", key, "informer", a.by.Name(), "object", a.Object,
					"error", a.err}, more...)...)
		}
	}
}

// hasLeft reports whether an object that the informer deleted still exists: it has left the
// selection, or its namespace is no longer one of the informer's.
func (r *run[T]) hasLeft(ctx context.Context, last metav1.Object) (bool, error) {
	primary := r.c.informers.Primary()
	if _, held := primary.Reached(last.GetNamespace()); !held {
		return true, nil
	}
	if !primary.Selects() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askAfter)
	defer cancel()
	return r.c.o.Guard.Exists(ctx, primary.GVR(), last)
}
