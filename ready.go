package tidings

import (
	"errors"
	"fmt"
	"net/http"
)

// errNotListed is the cause of a NotSyncedError that no wait has led to.
var errNotListed = errors.New("the cache does not hold a complete list yet")

// Ready returns nil if every informer that was asked for holds a complete list, and has not
// stopped. Otherwise it returns a *NotSyncedError, which names the informers and the reasons. It
// does not wait, costs no request, and does not use its parameter: that makes it a healthz.Checker
// of controller-runtime, for AddReadyzCheck.
func (f *Factory) Ready(*http.Request) error {
	notSynced := &NotSyncedError{Cause: errNotListed}
	for _, w := range f.waiters() {
		over := w.Over()
		if w.InSync() || over == ErrReleased {
			continue
		}
		if over != nil {
			notSynced.Cause = over
		}
		notSynced.Informers = append(notSynced.Informers, w.Health())
	}
	if len(notSynced.Informers) == 0 {
		return nil
	}
	return notSynced
}

// ReadyHandler returns a handler for a readiness probe: it answers 200 and "ok" if the factory is
// Ready, and otherwise 503 and the error.
func (f *Factory) ReadyHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := f.Ready(r); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
}
