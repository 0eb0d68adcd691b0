package source

import (
	"context"
	"log/slog"
)

// Tracer starts spans. A *tracing.Tracer is one. Several goroutines use it at once.
type Tracer interface {
	// Start starts a span and returns it, with a context that carries it. The parent of the span
	// is the span that ctx carries, if there is one.
	Start(ctx context.Context, name string, attrs ...slog.Attr) (context.Context, Span)
}

// Span is one operation with its beginning and its end.
type Span interface {
	// End ends the span with more attributes. err is why the operation failed; nil means that it
	// succeeded. It is called once.
	End(err error, attrs ...slog.Attr)
}
