package controller

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/source"
)

// reasons returns the reasons of the call as the function receives them.
func (c *call[T]) reasons() []Reason {
	reasons := make([]Reason, len(c.item.Reasons))
	for i, w := range c.item.Reasons {
		reasons[i] = Reason{
			Cause: w.Reason.cause, Object: w.Reason.key, Own: w.Reason.own, Count: w.Count,
		}
		reasons[i].Manager = textOf(w.Reason.manager)
		if w.Reason.key != "" {
			reasons[i].Informer = c.r.c.informers.NameOf(w.Reason.informer)
		}
	}
	return reasons
}

// outcome counts the result and the error of the call, and returns what the queue does with the key.
func (c *call[T]) outcome() queue.Outcome {
	of := c.r.c
	if c.err == nil {
		of.count(func(h *Health) {
			if c.result.RequeueAfter > 0 {
				h.Requeues++
			} else {
				h.Succeeded++
			}
		})
		return queue.Outcome{After: max(c.result.RequeueAfter, 0)}
	}
	of.count(func(h *Health) {
		h.Errors++
		h.LastError, h.LastErrorOf, h.LastErrorAt = c.err.Error(), c.item.Key, time.Now()
	})
	attrs := []any{"key", c.item.Key, "failures", c.item.Failures + 1, "error", c.err}
	switch {
	case isTerminal(c.err):
		of.count(func(h *Health) { h.Terminal++ })
		if more, ok := of.terminals.Allow(); ok {
			of.o.Logger.Error("a call failed, and waits for a change", append(attrs, more...)...)
		}
		return queue.Outcome{Result: queue.Fail}
	case apierrors.IsConflict(c.err) || c.r.calls.Err() != nil:
		of.o.Logger.Debug("a call is tried again", attrs...)
	default:
		if more, ok := of.retries.Allow(); ok {
			of.o.Logger.Warn("a call failed, and is tried again", append(attrs, more...)...)
		}
	}
	of.count(func(h *Health) { h.Retries++ })
	return retryOf(c.err)
}

// startSpan starts the span of a call, if there is a tracer that does not panic. The function end ends it.
func (c *call[T]) startSpan() (traced context.Context, end func(Result, error)) {
	r, ctx, request, tracer := c.r, c.Context, &c.request, c.r.c.o.Tracer
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
