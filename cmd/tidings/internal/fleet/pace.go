package fleet

import (
	"context"
	"time"
)

// tick is how often a pace looks whether writes are due.
const tick = 10 * time.Millisecond

// Pace says how many writes are due by a given time.
type Pace struct {
	perSecond float64
	began     time.Time
	done      int
}

// NewPace returns a pace of so many writes a second, from now on.
func NewPace(perSecond float64, now time.Time) *Pace {
	return &Pace{perSecond: perSecond, began: now}
}

// Due returns how many writes are to be made now, at most those of one second: a
// writer that cannot keep up does not pile up a debt.
func (p *Pace) Due(now time.Time) int {
	target := int(now.Sub(p.began).Seconds() * p.perSecond)
	due := target - p.done
	p.done = target
	return min(due, int(p.perSecond)+1)
}

// Run makes so many steps a second until ctx ends or a write fails. Without any it only
// answers the writes of others.
func (f *Fleet) Run(ctx context.Context, perSecond float64) error {
	pace := NewPace(perSecond, time.Now())
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if perSecond <= 0 {
				if _, err := f.Answer(ctx, now); err != nil {
					return err
				}
				continue
			}
			for range pace.Due(now) {
				if ctx.Err() != nil {
					return nil
				}
				if err := f.Step(ctx, time.Now()); err != nil {
					return err
				}
			}
		}
	}
}
