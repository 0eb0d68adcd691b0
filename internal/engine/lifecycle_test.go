package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// watched is a context that counts what waits for its end.
type watched struct {
	context.Context
	done    <-chan struct{}
	waiting atomic.Int64
}

func newWatched(t *testing.T, ctx context.Context) *watched {
	child, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	return &watched{Context: ctx, done: child.Done()}
}

// Done is not the one of the context in it, which would be asked in its place.
func (w *watched) Done() <-chan struct{} { return w.done }

func (w *watched) AfterFunc(f func()) (stop func() bool) {
	w.waiting.Add(1)
	undo := context.AfterFunc(w.Context, func() {
		w.waiting.Add(-1)
		f()
	})
	return func() bool {
		undone := undo()
		if undone {
			w.waiting.Add(-1)
		}
		return undone
	}
}

// TestOutlast: a run ends once its context and all that it outlasts have ended, or with end.
func TestOutlast(t *testing.T) {
	cause := errors.New("the program stops")
	for name, row := range map[string]struct {
		outlasts []string // before the claim, in its course, and after its end
		ends     []string // one after the other
		goesOn   int      // the number of ends after which it goes on
	}{
		"nothing":              {nil, []string{"term"}, 0},
		"a context":            {[]string{"a"}, []string{"term", "a"}, 1},
		"one twice":            {[]string{"a", "a"}, []string{"term", "a"}, 1},
		"one that ends before": {[]string{"a"}, []string{"a", "term"}, 1},
		"two contexts":         {[]string{"a", "b"}, []string{"a", "term", "b"}, 2},
		"the end":              {[]string{"a"}, []string{"term", "end"}, 1},
		"the end alone":        {[]string{"a"}, []string{"end"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLifecycle("pods")
				contexts, ends := map[string]*watched{}, map[string]func(){"end": func() { l.end(false) }}
				for _, name := range []string{"term", "a", "b"} {
					ctx, cancel := context.WithCancelCause(t.Context())
					contexts[name], ends[name] = newWatched(t, ctx), func() { cancel(cause) }
					defer cancel(nil)
				}
				for i, name := range row.outlasts {
					if i > 0 {
						l.Outlast(contexts[name])
					}
				}
				ctx, err := l.Claim(contexts["term"])
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range row.outlasts {
					l.Outlast(contexts[name])
				}
				for name, w := range contexts {
					if n := w.waiting.Load(); n > 1 {
						t.Errorf("%d wait for the end of %s", n, name)
					}
				}
				for i, name := range row.ends {
					ends[name]()
					over := l.Over() // at once
					if over != nil {
						l.Outlast(contexts["b"])
					}
					if goesOn := i < row.goesOn; goesOn != (over == nil) {
						t.Fatalf("after %d ends it is over: %v", i+1, over)
					} else if synctest.Wait(); goesOn != (ctx.Err() == nil) {
						t.Fatalf("after %d ends the context has the error %v", i+1, ctx.Err())
					} else if goesOn {
						continue
					}
					if l.Over() != ErrStopped {
						t.Errorf("it is over: %v", l.Over())
					}
					if got := context.Cause(ctx); row.ends[i] != "end" && got != cause {
						t.Errorf("the cause is %v", got)
					}
				}
				l.finish(nil, nil)
				for name, w := range contexts {
					if w.waiting.Load() > 0 {
						t.Errorf("something waits for the end of %s", name)
					}
				}
			})
		})
	}
}

// TestOutlastAfterTheEnd keeps nothing.
func TestOutlastAfterTheEnd(t *testing.T) {
	l, other := newLifecycle("pods"), newWatched(t, context.Background())
	if !l.end(false) {
		t.Fatal("it was claimed")
	}
	l.finish(nil, nil)
	if l.Outlast(other); other.waiting.Load() > 0 {
		t.Error("something waits for the end of a context")
	}
}

// TestClaimWithAContextThatHasEnded ends the run at once, unless it outlasts the context.
func TestClaimWithAContextThatHasEnded(t *testing.T) {
	for range 100 {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		l, lasting := newLifecycle("pods"), newLifecycle("pods")
		lasting.Outlast(t.Context())
		for want, l := range map[error]*Lifecycle{context.Canceled: l, nil: lasting} {
			if ctx, err := l.Claim(ended); err != nil || ctx.Err() != want {
				t.Fatalf("the context has the error %v, want %v; %v", ctx.Err(), want, err)
			}
		}
	}
}
