package reflector

import (
	"context"
	"fmt"
	"time"

	"github.com/tidings-go/tidings/source"
)

// patience ends a list that brings nothing for too long. Each sign of life begins the time
// anew, so that a list may take as long as it needs.
type patience struct {
	limit  time.Duration           // below 0 there is none
	cancel context.CancelCauseFunc // of the request's context
	timer  *time.Timer             // nil until the request was sent
}

// heard begins the time anew.
func (p *patience) heard() {
	switch {
	case p.limit < 0:
	case p.timer == nil:
		p.timer = time.AfterFunc(p.limit, func() {
			p.cancel(fmt.Errorf("%w for %v", source.ErrSilent, p.limit))
		})
	default:
		p.timer.Reset(p.limit)
	}
}

// pause stops the time until something is heard.
func (p *patience) pause() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// listPatiently reads one page.
func (r *Reflector[T]) listPatiently(ctx context.Context, o source.ListOptions) (source.Page[T], error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &patience{limit: r.o.MaxSilence, cancel: cancel}
	defer p.pause()
	o.OnActivity = p.heard
	return r.source.List(ctx, o)
}
