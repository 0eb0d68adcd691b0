package controller

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// Logger returns the logger of the call with the context ctx: Options.Logger with the attributes
// controller, key and call, which is Call.Number. logr.FromContext and klog.FromContext return it
// as a logr.Logger. Clients of client-go log requests with it: their URLs at levels from -6 on down,
// and their bodies at -8, so that these stay out of logs of slog.LevelDebug. For any other context it
// returns slog.Default().
func Logger(ctx context.Context) *slog.Logger {
	if logger := logr.FromContextAsSlogLogger(ctx); logger != nil {
		return logger
	}
	return slog.Default()
}

// callLines handles the lines of a call, with its key and number. Most calls log none.
type callLines struct {
	slog.Handler
	key    string
	number uint64 // as Call.Number
}

func (l *callLines) withCall() slog.Handler {
	return l.Handler.WithAttrs([]slog.Attr{slog.String("key", l.key), slog.Uint64("call", l.number)})
}

// Handle hands a line on with the key and the number.
func (l *callLines) Handle(ctx context.Context, line slog.Record) error {
	return l.withCall().Handle(ctx, line)
}

// WithAttrs returns a handler with the key, the number and others.
func (l *callLines) WithAttrs(attrs []slog.Attr) slog.Handler { return l.withCall().WithAttrs(attrs) }

// WithGroup returns a handler with the key and the number, and others in a group.
func (l *callLines) WithGroup(name string) slog.Handler { return l.withCall().WithGroup(name) }
