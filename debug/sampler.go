package debug

import (
	"context"
	"sync"
	"time"

	"github.com/tidings-go/tidings/health"
)

const (
	// samplePeriod is the time between two samples, and samples the number that is kept.
	samplePeriod = time.Second
	samples      = 120
	// samplerIdle is the time without a request after which sampling ends.
	samplerIdle = 5 * time.Minute
)

// sample maps the names of figures of an informer or a controller to their values at one time.
type sample map[string]float64

// sampler keeps samples by the name of the informer or controller.
type sampler struct {
	take func() map[string]sample
	ctx  context.Context

	mu      sync.Mutex // guards the rest
	asked   time.Time  // the time of the last request
	running bool
	kept    map[string][]sample
}

func newSampler(ctx context.Context, take func() map[string]sample) *sampler {
	return &sampler{take: take, ctx: ctx}
}

// wake starts the sampler, unless it runs, and keeps it running.
func (s *sampler) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Now()
	if s.running || s.ctx.Err() != nil {
		return
	}
	s.running, s.kept = true, map[string][]sample{}
	go s.run()
}

func (s *sampler) run() {
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()
	for s.add(s.take()) {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// add keeps a sample of each, and drops the samples of names that are gone. It reports whether
// the sampler goes on.
func (s *sampler) add(now map[string]sample) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.kept {
		if now[name] == nil {
			delete(s.kept, name)
		}
	}
	for name, figures := range now {
		list := append(s.kept[name], figures)
		s.kept[name] = list[max(0, len(list)-samples):]
	}
	s.running = time.Since(s.asked) < samplerIdle
	return s.running
}

// Series are values at intervals of a second, the newest last.
type Series []float64

func (s *sampler) values(name, figure string) Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	var series Series
	for _, at := range s.kept[name] {
		series = append(series, at[figure])
	}
	return series
}

// behind returns how far a handler is behind: the age of the oldest notification that waits for it,
// in whole seconds, or the time since the oldest sample if it is older.
func (s *sampler) behind(informer string, h health.Handler) time.Duration {
	if h.Pending == 0 {
		return 0
	}
	delivered := s.values("informer "+informer, "delivered to "+h.Name)
	pending := s.values("informer "+informer, "pending of "+h.Name)
	seconds := 0
	for i := len(delivered) - 1; i >= 0 && delivered[i]+pending[i] > float64(h.Delivered); i-- {
		seconds++
	}
	return time.Duration(seconds) * samplePeriod
}

// rates returns the growth of a counter from second to second.
func (s *sampler) rates(name, counter string) Series {
	counts := s.values(name, counter)
	var series Series
	for i := 1; i < len(counts); i++ {
		series = append(series, max(0, counts[i]-counts[i-1]))
	}
	return series
}

// Last returns the newest value, 0 without one.
func (s Series) Last() float64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1]
}
