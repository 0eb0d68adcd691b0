package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tidings-go/tidings/source"
)

// scope names the instrumentation, as OpenTelemetry asks for: by the import path of the module.
const scope = "github.com/tidings-go/tidings"

// Tracer makes spans of lists, watches and reconciles. Use [New], and give it to informers as
// Transport.Tracer and to controllers as Options.Tracer.
type Tracer struct{ tracer trace.Tracer }

// New returns a tracer whose spans a provider makes. With a nil provider, nothing is traced.
func New(provider trace.TracerProvider) *Tracer {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	return &Tracer{provider.Tracer(scope)}
}

// Start starts a span. A nil Tracer starts one that is not recorded.
func (t *Tracer) Start(
	ctx context.Context, name string, attrs ...slog.Attr,
) (context.Context, source.Span) {
	if t == nil {
		t = New(nil)
	}
	ctx, started := t.tracer.Start(ctx, name, trace.WithAttributes(attributes(attrs)...))
	return ctx, span{started}
}

// span is a span of OpenTelemetry.
type span struct{ of trace.Span }

// End ends the span. An error is its status, and an event of it.
func (s span) End(err error, attrs ...slog.Attr) {
	s.of.SetAttributes(attributes(attrs)...)
	if err != nil {
		s.of.RecordError(err)
		s.of.SetStatus(codes.Error, err.Error())
	}
	s.of.End()
}

func attributes(attrs []slog.Attr) []attribute.KeyValue {
	converted := make([]attribute.KeyValue, len(attrs))
	for i, a := range attrs {
		converted[i] = attribute.KeyValue{Key: attribute.Key(a.Key), Value: valueOf(a.Value)}
	}
	return converted
}

// valueOf converts a value. A duration becomes seconds; a value without a type of its own in
// OpenTelemetry becomes text.
func valueOf(v slog.Value) attribute.Value {
	switch v.Kind() {
	case slog.KindBool:
		return attribute.BoolValue(v.Bool())
	case slog.KindInt64:
		return attribute.Int64Value(v.Int64())
	case slog.KindFloat64:
		return attribute.Float64Value(v.Float64())
	case slog.KindDuration:
		return attribute.Float64Value(v.Duration().Seconds())
	}
	if texts, ok := v.Any().([]string); ok {
		return attribute.StringSliceValue(texts)
	}
	return attribute.StringValue(v.String())
}
