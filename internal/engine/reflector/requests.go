package reflector

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// requests sends the requests of a reflector and counts them in health. Any goroutine may use it.
type requests[T any] struct {
	*shared[T]
	source source.Source[T]
}

// page asks for a page. The request ends if it is silent for Options.MaxSilence.
func (q *requests[T]) page(
	ctx context.Context, src source.Source[T], o source.ListOptions,
) (source.Page[T], error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := idleTimer{cancel: cancel}
	idle.set(q.o.MaxSilence, silence(q.o.MaxSilence))
	defer idle.stop()
	o.OnActivity = idle.restart
	page, err := src.List(ctx, o)
	q.slots.note(o.ShardSelector, page.Sharded, err)
	return page, err
}

// beginPages counts a list and returns the reader of its pages.
func (q *requests[T]) beginPages(
	ctx context.Context, src source.Source[T], o source.ListOptions,
) *pageReader[T] {
	return &pageReader[T]{requests: q, source: src, o: o, span: q.startList(ctx)}
}

// startList counts a list and starts its span.
func (q *requests[T]) startList(ctx context.Context) span {
	q.recorder.change(func(h *health.Watch) { h.Lists++ })
	return q.startSpan(ctx, "list")
}

// one lists one object, to learn something about the server.
func (q *requests[T]) one(ctx context.Context, o source.ListOptions) (source.Page[T], error) {
	q.recorder.change(func(h *health.Watch) { h.Checks++ })
	span := q.startSpan(ctx, "check")
	o.Limit = 1
	page, err := q.page(span.ctx, q.source, o)
	span.end(err, slog.String("version", page.Version))
	return page, err
}

// selection returns the selection of a list or a watch that begins now. While the server has not
// honoured a selector, it is asked once more whether it does, except after a failure. A failure of
// that request counts as no: the request that follows shows the cause.
func (q *requests[T]) selection(ctx context.Context, failing bool) selection {
	if held := q.slots.held(); q.slots.maySelect(held) && !q.slots.honoured.Load() && !failing {
		ctx, cancel := context.WithTimeout(ctx, longestCheck)
		defer cancel()
		q.one(ctx, source.ListOptions{ //nolint:errcheck // see above
			ShardSelector: held.UIDSelector(), Selects: q.slots.selects(),
		})
	}
	return q.slots.selectionOf(q.slots.held())
}

// watch begins a watch, which ends within Options.WatchTimeout and twice that time, or within
// o.Timeout if that is shorter. earlier is the longest wait between two bookmarks of an earlier
// watch, 0 if there is none.
func (q *requests[T]) watch(
	ctx context.Context, o source.WatchOptions, asked selection, earlier time.Duration,
) (*stream[T], error) {
	timeout := sum(q.o.WatchTimeout, rand.N(q.o.WatchTimeout))
	o.Timeout = min(timeout, cmp.Or(o.Timeout, timeout))
	o.ShardSelector = asked.selector
	s := &stream[T]{
		name: q.o.Name, asked: asked, at: o.Version, opening: true, listing: o.SendInitialEvents,
		earlier: earlier,
	}
	run := ctx
	if !s.listing {
		s.span = q.startSpan(ctx, "watch", slog.String("version", o.Version))
		ctx = s.span.ctx
	}
	ctx, s.end = context.WithTimeoutCause(ctx, sum(o.Timeout, grace), errOutlived)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.idle.cancel = s.cancel
	s.idle.set(q.o.MaxSilence, silence(q.o.MaxSilence))
	o.OnActivity = s.active
	q.recorder.change(func(h *health.Watch) {
		h.Watches++
		h.Sharded = o.ShardSelector != ""
	})
	var err error
	s.Stream, err = q.source.Watch(s.ctx, o)
	s.opened = time.Now() // after Watch: a client may have tried for long
	if err != nil {
		err = s.causeOf(err)
		q.slots.note(o.ShardSelector, true, err)
		s.free()
		s.endSpan(run, err, false)
		return nil, err
	}
	s.opening = false
	s.limitQuiet()
	return s, nil
}

// startSpan starts the span of an operation.
func (q *requests[T]) startSpan(ctx context.Context, operation string, attrs ...slog.Attr) span {
	if q.o.Tracer == nil {
		return span{ctx: ctx}
	}
	attrs = append(attrs, slog.String("informer", q.o.Name))
	if namespace := strings.TrimSuffix(q.o.Partition, "/"); namespace != "" {
		attrs = append(attrs, slog.String("namespace", namespace))
	}
	ctx, open := q.o.Tracer.Start(ctx, operation+" "+q.o.Name, attrs...)
	return span{ctx, open}
}

// span is the span of a list or a watch. Without Transport.Tracer it has a context alone.
type span struct {
	ctx  context.Context // of the requests
	open source.Span     // nil before the beginning and after the end
}

// end ends the span, if it has not ended.
func (s *span) end(err error, attrs ...slog.Attr) {
	if s.open == nil {
		return
	}
	s.open.End(source.Bound(err), attrs...) // not every source bounds its errors
	s.open = nil
}
