package controller

import (
	"context"
	"log/slog"

	"github.com/tidings-go/tidings/source"
)

// startSpan starts the span of a call, if there is a tracer that does not panic. The function end ends it.
func (r *run[T]) startSpan(
	ctx context.Context, request Request[T],
) (traced context.Context, end func(Result, error)) {
	tracer := r.c.o.Tracer
	if tracer == nil {
		return ctx, func(Result, error) {}
	}
	reasons := make([]string, len(request.Reasons))
	for i, reason := range request.Reasons {
		reasons[i] = reason.String()
	}
	defer func() {
		if value := recover(); value != nil {
			r.panicked("Tracer", request.Key, value)
			traced, end = ctx, func(Result, error) {}
		}
	}()
	traced, span := tracer.Start(ctx, "reconcile "+r.c.o.Name,
		slog.String("controller", r.c.o.Name), slog.String("key", request.Key),
		slog.Any("reasons", reasons), slog.Int("moreReasons", request.MoreReasons),
		slog.Int("failures", request.Failures), slog.Duration("waited", request.Waited),
		slog.Bool("gone", request.Gone))
	return traced, func(result Result, err error) {
		defer func() {
			if value := recover(); value != nil {
				r.panicked("Tracer", request.Key, value)
			}
		}()
		span.End(source.Bound(err), slog.Duration("requeueAfter", result.RequeueAfter))
	}
}
