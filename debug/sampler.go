package debug

import (
	"context"
	"sync"
	"time"

	"github.com/tidings-go/tidings/health"
)

const (
	// samplePeriod is the time between two samples while somebody looks, and samples the number
	// that is kept.
	samplePeriod = time.Second
	samples      = 120
	// samplerIdle is the time without a request after which nobody looks any more.
	samplerIdle = 5 * time.Minute
	// historyEvery is the number of sample periods between two samples of the history.
	historyEvery = 10
)

// sample maps the names of figures of an informer, a controller or the process to their values at
// one time.
type sample map[string]float64

// sampler takes samples from its start until its context ends. It keeps a history, and while
// somebody looks, the samples of the last two minutes.
type sampler struct {
	take  func() map[string]sample
	ctx   context.Context
	ended chan struct{} // closed when its goroutine has ended; nil before the start

	mu      sync.Mutex // guards the rest
	asked   time.Time  // the time of the last request
	kept    map[string][]sample
	history history
}

func newSampler(ctx context.Context, take func() map[string]sample) *sampler {
	return &sampler{take: take, ctx: ctx}
}

// start starts the goroutine, unless it was started.
func (s *sampler) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.ctx.Err() != nil {
		return
	}
	s.ended = make(chan struct{})
	go s.run()
}

// wait waits for the end of the goroutine. The context has to have ended.
func (s *sampler) wait() {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// wake says that somebody looks.
func (s *sampler) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = now()
}

func (s *sampler) run() {
	defer close(s.ended)
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()
	for n := 0; s.ctx.Err() == nil; n++ {
		isHistory := n%historyEvery == 0
		if isWatched := s.isWatched(); isWatched || isHistory {
			s.add(now(), s.take(), isWatched, isHistory)
		}
		select {
		case <-s.ctx.Done():
		case <-ticker.C:
		}
	}
}

// isWatched reports whether somebody looks. If not, the samples of the last two minutes are
// forgotten.
func (s *sampler) isWatched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked.IsZero() && time.Since(s.asked) < samplerIdle {
		return true
	}
	s.kept = nil
	return false
}

// add keeps a sample of each, and drops the samples of names that are gone.
func (s *sampler) add(at time.Time, all map[string]sample, isWatched, isHistory bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isHistory {
		s.history.add(at, all)
	}
	if !isWatched {
		return
	}
	if s.kept == nil {
		s.kept = map[string][]sample{}
	}
	for name := range s.kept {
		if all[name] == nil {
			delete(s.kept, name)
		}
	}
	for name, figures := range all {
		list := append(s.kept[name], figures)
		s.kept[name] = list[max(0, len(list)-samples):]
	}
}

// began returns the time of the oldest sample of the history.
func (s *sampler) began() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.history.times) == 0 {
		return time.Time{}
	}
	return s.history.times[0]
}

func (s *sampler) values(name, figure string) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var values []float64
	for _, at := range s.kept[name] {
		values = append(values, at[figure])
	}
	return values
}

// behind returns how far a handler is behind: the age of the oldest notification that waits for it,
// in whole seconds, or the time since the oldest sample if it is older.
func (s *sampler) behind(informer string, h health.Handler) time.Duration {
	if h.Pending == 0 {
		return 0
	}
	of := "informer " + informer
	delivered := s.values(of, "delivered to "+h.Name)
	pending := s.values(of, "pending of "+h.Name)
	seconds := 0
	for i := len(delivered) - 1; i >= 0 && delivered[i]+pending[i] > float64(h.Delivered); i-- {
		seconds++
	}
	if seconds < len(delivered) { // the samples of the last two minutes reach back far enough
		return time.Duration(seconds) * samplePeriod
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(time.Duration(seconds)*samplePeriod, s.history.behind(of, h))
}

// rate returns the growth of a counter in the last second, or for each of the ten seconds before the
// last point of the history, if nobody has looked before.
func (s *sampler) rate(name, counter string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept[name]
	if len(kept) < 2 {
		if last := s.history.of(name, counter, add); len(last) > 0 {
			return last[len(last)-1]
		}
		return 0
	}
	return max(0, kept[len(kept)-1][counter]-kept[len(kept)-2][counter])
}

// series returns a figure of the history.
func (s *sampler) series(name, figure string) Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.of(name, figure, add)
}
