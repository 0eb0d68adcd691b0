package cli

import (
	"context"
	"net/http"
	"sync"
)

// silencer makes watches that run silent: their connections stay open, and nothing comes. Later
// watches are not affected.
type silencer struct {
	matches func(*http.Request) bool // reports whether a watch may become silent

	mu    sync.Mutex // guards quiet
	quiet *silence   // of the watches that begin now
}

// silence is the time in which watches are silent.
type silence struct{ begun, over chan struct{} }

func newSilence() *silence { return &silence{make(chan struct{}), make(chan struct{})} }

func newSilencer(matches func(*http.Request) bool) *silencer {
	return &silencer{matches: matches, quiet: newSilence()}
}

// silence makes the watches that run now silent. They go on with end, which loses nothing.
func (s *silencer) silence() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := s.quiet
	s.quiet = newSilence()
	close(quiet.begun)
	return func() { close(quiet.over) }
}

// writer returns the writer for the answer to a request.
func (s *silencer) writer(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.URL.Query().Get("watch") == "" || !s.matches(r) {
		return w
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &silencedWriter{ResponseWriter: w, ctx: r.Context(), quiet: s.quiet}
}

// silencedWriter writes nothing during a silence.
type silencedWriter struct {
	http.ResponseWriter
	ctx   context.Context // of the request
	quiet *silence
}

// Write writes a part of the answer, or waits until the silence is over or the client is gone.
func (w *silencedWriter) Write(p []byte) (int, error) {
	select {
	case <-w.quiet.begun:
		select {
		case <-w.quiet.over:
		case <-w.ctx.Done():
			return 0, context.Cause(w.ctx)
		}
	default:
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the writer below.
func (w *silencedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
