package reflector

import (
	"context"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/served"
)

// handleMissing hands on an empty collection for an optional resource that the server does not
// have: at once if nothing was listed yet, else after a minute.
func (r *Reflector[T]) handleMissing(ctx context.Context, end ending) error {
	if !r.o.Optional || !end.missing {
		r.server.absence = served.Absence{}
		return nil
	}
	if lasts := r.server.absence.Lasts(time.Now()); r.emptied || r.listed && !lasts {
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
