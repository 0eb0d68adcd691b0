package engine

import (
	"context"
	"runtime/pprof"
	"sync"
	"sync/atomic"
)

// goroutines are the goroutines that Run waits for. Code of the user may run in them: if that calls
// runtime.Goexit, the collection ends in order.
type goroutines struct {
	life   *Lifecycle
	exited atomic.Bool // a callback has called runtime.Goexit

	mu     sync.Mutex      // guards the rest
	ctx    context.Context // of Run; nil before
	ending bool            // none is started any more, except by another one
	group  sync.WaitGroup
}

// begin makes start start goroutines, with the context of Run.
func (g *goroutines) begin(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ctx = ctx
}

// end waits for all of them.
func (g *goroutines) end() {
	g.mu.Lock()
	g.ending = true
	g.mu.Unlock()
	g.group.Wait()
}

// context returns the context of Run; nil before.
func (g *goroutines) context() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ctx
}

// start starts a goroutine with the context of Run, and reports whether there is a run which does
// not end.
func (g *goroutines) start(does string, f func(context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil || g.ending {
		return false
	}
	g.startAnother(g.ctx, does, f)
	return true
}

// startAnother starts a goroutine. The caller is one of them, or holds mu.
func (g *goroutines) startAnother(ctx context.Context, does string, f func(context.Context)) {
	g.group.Go(func() {
		g.life.label(ctx, does)
		returned := false
		defer func() {
			if !returned { // a panic ends the process
				g.endByGoexit()
			}
		}()
		f(ctx)
		returned = true
	})
}

// endByGoexit ends the run, because a callback has called runtime.Goexit, as a failing test does.
// Its goroutine cannot go on, and nothing else reads from the server or applies batches.
func (g *goroutines) endByGoexit() {
	g.exited.Store(true)
	g.life.end(false)
}

// label sets the labels of the goroutine in profiles.
func (l *Lifecycle) label(ctx context.Context, does string) {
	labels := pprof.Labels("informer", l.Name(), "does", does)
	pprof.SetGoroutineLabels(pprof.WithLabels(ctx, labels))
}

// Lock is a mutex made of a channel. In a bubble of testing/synctest, time goes on while a
// goroutine waits for a Lock whose holder sleeps.
type Lock chan struct{}

// NewLock returns an unlocked Lock.
func NewLock() Lock { return make(Lock, 1) }

// Lock locks l.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock unlocks l.
func (l Lock) Unlock() { <-l }
