package dedup

import "sync"

// maxIdle is how many runs wait for work: as many goroutines keep what they have
// learned.
const maxIdle = 8

// pool keeps runs, by what they share, for whoever decodes next. The zero value is ready.
type pool[R any] struct {
	mu   sync.Mutex // guards runs; it comes after no other lock and before none
	runs [ShareNothing][]R
}

// take returns a run that nobody else uses, if there is one.
func (p *pool[R]) take(sharing Sharing) (run R, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs := p.runs[sharing]
	n := len(runs)
	if n == 0 {
		return run, false
	}
	p.runs[sharing] = runs[:n-1]
	return runs[n-1], true
}

// give takes a run back.
func (p *pool[R]) give(run R, sharing Sharing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.runs[sharing]) < maxIdle {
		p.runs[sharing] = append(p.runs[sharing], run)
	}
}
