package cli

import (
	"context"
	"net/http"
	"strings"
	"sync"
)

// silencer makes the running watches of a resource silent: their connections stay open, and nothing
// comes. Later watches are not affected.
type silencer struct {
	resource string

	mu     sync.Mutex    // guards silent
	silent chan struct{} // closed when the watches that have it become silent
}

func newSilencer(resource string) *silencer {
	return &silencer{resource: resource, silent: make(chan struct{})}
}

// silence makes the watches that run now silent.
func (s *silencer) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.silent)
	s.silent = make(chan struct{})
}

// writer returns the writer for the answer to a request.
func (s *silencer) writer(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if !strings.HasSuffix(r.URL.Path, "/"+s.resource) || r.UserAgent() != demoAgent ||
		r.URL.Query().Get("watch") == "" {
		return w
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &silencedWriter{ResponseWriter: w, ctx: r.Context(), silent: s.silent}
}

// silencedWriter writes nothing once silent is closed.
type silencedWriter struct {
	http.ResponseWriter
	ctx    context.Context // of the request
	silent <-chan struct{}
}

// Write writes a part of the answer, or waits until the client is gone.
func (w *silencedWriter) Write(p []byte) (int, error) {
	select {
	case <-w.silent:
		<-w.ctx.Done()
		return 0, context.Cause(w.ctx)
	default:
		return w.ResponseWriter.Write(p)
	}
}

// Unwrap lets http.ResponseController reach the writer below.
func (w *silencedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
