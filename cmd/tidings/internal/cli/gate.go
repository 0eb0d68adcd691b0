package cli

import (
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gate lets writes over HTTP through until it is closed: what is compared or saved in the
// end has to stay as it is. It lets programs alone in, and no web page.
type gate struct {
	mu     sync.RWMutex // held for reading by writes under way; guards closed
	closed bool
}

// close waits for the writes under way and refuses those to come.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// wrap returns a handler that has the gate before it.
func (g *gate) wrap(next http.Handler) http.Handler {
	return onlyPrograms(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		g.mu.RLock()
		defer g.mu.RUnlock()
		if !g.closed {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is about to end: nothing is written any more")
	}))
}
