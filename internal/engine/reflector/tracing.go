package reflector

import (
	"context"
	"log/slog"

	"github.com/tidings-go/tidings/source"
)

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

// endings are the causes of the end of a watch, as its span has them.
var endings = [...]string{
	stopped: "stopped", torn: "silent", outgrown: "outgrown", finished: "finished", endless: "endless",
	expired: "expired", lost: "lost", undecodable: "undecodable", refused: "refused",
	busy: "busy", broken: "broken",
}

// endSpan ends the span of the watch. A watch that the server ended in good order, one that
// slots have outgrown, and one that ended with Run, have no error.
func (s *stream[T]) endSpan(ctx context.Context, err error, begun bool) {
	if s == nil || s.span.open == nil {
		return
	}
	c := classify(err, begun).cause
	if ctx.Err() != nil {
		c = stopped
	}
	if c == stopped || c == outgrown || c == finished {
		err = nil
	}
	s.span.end(err, slog.String("end", endings[c]), slog.Int("events", s.events))
}
