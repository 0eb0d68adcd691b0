package reflector

import (
	"context"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
)

// leastMissing is the time for which the server must answer that it has no such resource before the
// cached objects of an optional collection are deleted. A server that starts, or one of
// several that has not seen a definition yet, answers so for a moment.
const leastMissing = time.Minute

// handleMissing hands on an empty collection for an optional resource that the server does not
// have: at once if nothing was listed yet, else after leastMissing.
func (r *Reflector[T]) handleMissing(ctx context.Context, end ending) error {
	if !r.o.Optional || !end.missing {
		r.server.missingSince = time.Time{}
		return nil
	}
	now := time.Now()
	if r.server.missingSince.IsZero() {
		r.server.missingSince = now
	}
	if r.emptied || r.listed && now.Sub(r.server.missingSince) < leastMissing {
		return nil
	}
	// When the definition comes back, the server may have been restored from a backup. Versions
	// of the old objects do not compare with those of the new ones.
	if err := r.replace(ctx, nil, "", nil, delta.ReplaceOptions{NewHistory: true}); err != nil {
		return err
	}
	r.history.position, r.history.absent = position{}, absence{}
	r.recorder.change(func(h *health.Watch) { h.Version = "" })
	return nil
}
