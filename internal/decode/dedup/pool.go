package dedup

import "sync"

// maxIdle is the number of idle workers that are kept, with their fieldStats.
const maxIdle = 8

// A workerPool keeps idle workers, by their Sharing. The zero value is ready.
type workerPool[W any] struct {
	mu      sync.Mutex // guards workers; no other lock is taken under it
	workers [ShareNothing][]W
}

func (p *workerPool[W]) take(sharing Sharing, newWorker func() W) W {
	p.mu.Lock()
	defer p.mu.Unlock()
	workers := p.workers[sharing]
	n := len(workers)
	if n == 0 {
		return newWorker()
	}
	p.workers[sharing] = workers[:n-1]
	return workers[n-1]
}

func (p *workerPool[W]) give(worker W, sharing Sharing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.workers[sharing]) < maxIdle {
		p.workers[sharing] = append(p.workers[sharing], worker)
	}
}
