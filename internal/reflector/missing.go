package reflector

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
)

// surelyMissing is how long the server must say that it has no such resource before
// an optional collection that was listed is taken for empty. A server that starts, or
// one of several that has not heard of a definition yet, says so for a moment; and
// whoever is told of a delete acts on it.
const surelyMissing = time.Minute

// missing hands on an empty collection for an optional resource that the server does
// not have: at once if nothing was listed yet, else once that is sure.
func (r *Reflector[T]) missing(ctx context.Context, err error) error {
	if !r.o.Optional || !apierrors.IsNotFound(err) {
		r.missingSince = time.Time{}
		return nil
	}
	now := time.Now()
	if r.missingSince.IsZero() {
		r.missingSince = now
	}
	if r.emptied || r.listed && now.Sub(r.missingSince) < surelyMissing {
		return nil
	}
	// When the definition comes back, the server may have been restored from a backup. Versions
	// of the old objects say nothing about the new ones.
	if err := r.queue.Replace(ctx, r.o.Scope, "", nil, delta.ReplaceOptions{NewHistory: true}); err != nil {
		return err
	}
	r.emptied, r.version, r.resume, r.highest = true, "", "", ""
	r.recorder.change(func(h *health.Watch) { h.Version = "" })
	return nil
}
