package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/tracing"
)

var _ source.Tracer = (*tracing.Tracer)(nil)

// provider is a trace.TracerProvider that keeps the spans.
type provider struct {
	embedded.TracerProvider
	scope string
	spans []*span
}

func (p *provider) Tracer(scope string, _ ...trace.TracerOption) trace.Tracer {
	p.scope = scope
	return tracer{p: p}
}

type tracer struct {
	embedded.Tracer
	p *provider
}

func (t tracer) Start(
	ctx context.Context, name string, o ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	s := &span{name: name, parent: trace.SpanFromContext(ctx)}
	config := trace.NewSpanStartConfig(o...)
	s.SetAttributes(config.Attributes()...)
	t.p.spans = append(t.p.spans, s)
	return trace.ContextWithSpan(ctx, s), s
}

// span notes the calls of its methods.
type span struct {
	noop.Span
	name     string
	parent   trace.Span
	attrs    []attribute.KeyValue
	recorded error
	code     codes.Code
	status   string
	ends     int
}

func (s *span) SetAttributes(attrs ...attribute.KeyValue)     { s.attrs = append(s.attrs, attrs...) }
func (s *span) RecordError(err error, _ ...trace.EventOption) { s.recorded = err }
func (s *span) SetStatus(code codes.Code, text string)        { s.code, s.status = code, text }
func (s *span) End(...trace.SpanEndOption)                    { s.ends++ }

// TestSpans ends a span with an error inside of one without.
func TestSpans(t *testing.T) {
	p := &provider{}
	tr := tracing.New(p)
	ctx, outer := tr.Start(t.Context(), "reconcile pods", slog.String("key", "a/b"),
		slog.Any("reasons", []string{"Initial"}), slog.Bool("gone", true), slog.Float64("part", 0.5))
	_, inner := tr.Start(ctx, "list pods.v1")
	failure := errors.New("it failed")
	inner.End(failure, slog.Int("objects", 3), slog.Duration("waited", 1500*time.Millisecond))
	outer.End(nil)

	if p.scope != "github.com/tidings-go/tidings" || len(p.spans) != 2 {
		t.Fatalf("the scope is %q, with %d spans", p.scope, len(p.spans))
	}
	first, second := p.spans[0], p.spans[1]
	if first.name != "reconcile pods" || first.code != codes.Unset || first.recorded != nil || first.ends != 1 {
		t.Errorf("the outer span is %+v", first)
	}
	if !slices.Equal(first.attrs, []attribute.KeyValue{
		attribute.String("key", "a/b"), attribute.StringSlice("reasons", []string{"Initial"}),
		attribute.Bool("gone", true), attribute.Float64("part", 0.5),
	}) {
		t.Errorf("its attributes are %v", first.attrs)
	}
	if second.parent != trace.Span(first) || second.recorded != failure || second.code != codes.Error ||
		second.status != "it failed" || second.ends != 1 {
		t.Errorf("the inner span is %+v", second)
	}
	if !slices.Equal(second.attrs, []attribute.KeyValue{
		attribute.Int("objects", 3), attribute.Float64("waited", 1.5),
	}) {
		t.Errorf("its attributes are %v", second.attrs)
	}
}

// TestNil starts spans without a provider, and with a nil Tracer.
func TestNil(t *testing.T) {
	for _, tr := range []*tracing.Tracer{nil, tracing.New(nil)} {
		ctx, s := tr.Start(t.Context(), "list pods.v1")
		s.End(nil)
		if trace.SpanFromContext(ctx).IsRecording() {
			t.Error("the span is recorded")
		}
	}
}
