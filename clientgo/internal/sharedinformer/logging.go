package sharedinformer

import (
	"context"
	"log/slog"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// newLogger returns the logger of a reflector. Warnings and errors reach the program's error
// handlers, as those of client-go do; the rest reaches the logger of the context.
func newLogger(ctx context.Context, reports *reporter) *slog.Logger {
	return slog.New(&errorHandler{ctx: ctx, reports: reports,
		rest: logr.ToSlogHandler(klog.FromContext(ctx))})
}

// errorHandler is a slog.Handler that passes warnings and errors to a reporter.
type errorHandler struct {
	ctx     context.Context
	reports *reporter
	rest    slog.Handler
	attrs   []slog.Attr
}

func (h *errorHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.rest.Enabled(ctx, level)
}

func (h *errorHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		// The attributes of With are added here, because klog's WithAttrs forgets them.
		r.AddAttrs(h.attrs...)
		return h.rest.Handle(ctx, r)
	}
	var failure error
	var pairs []any
	collect := func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && failure == nil {
			failure = err
		} else {
			pairs = append(pairs, a.Key, a.Value.Any())
		}
		return true
	}
	for _, a := range h.attrs {
		collect(a)
	}
	r.Attrs(collect)
	h.reports.report(h.ctx, failure, r.Message, pairs...)
	return nil
}

func (h *errorHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &errorHandler{ctx: h.ctx, reports: h.reports, rest: h.rest,
		attrs: append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup applies only to the lines for the logger of the context: no warning of a reflector
// has a group.
func (h *errorHandler) WithGroup(name string) slog.Handler {
	return &errorHandler{ctx: h.ctx, reports: h.reports, rest: h.rest.WithGroup(name), attrs: h.attrs}
}
