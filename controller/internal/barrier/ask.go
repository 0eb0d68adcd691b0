package barrier

import (
	"context"
	"log/slog"
	"sync"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/internal/see/lograte"
)

// mostAsked is the number of keys about which the server is asked at a time: the answers about some
// may not come.
const mostAsked = 256

// Asker asks the server about writes that the caches do not show.
type Asker struct {
	Barrier *Barrier
	Server  *guard.Guard
	Wake    func(key string) // queues a key that is no longer held back
	Logger  *slog.Logger
	Lines   *lograte.Limiter // of the log lines about writes that the server cannot be asked about
}

// Run asks about the keys that are due until ctx ends.
func (a *Asker) Run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	free := make(chan struct{}, mostAsked)
	for {
		if key, ok := a.Barrier.nextToAsk(); ok {
			free <- struct{}{}
			asking.Go(func() {
				defer func() { <-free }()
				failed := a.About(ctx, key)
				if ctx.Err() == nil {
					a.log(key, failed)
				}
			})
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-a.Barrier.asks:
		}
	}
}

// About asks about the writes of a key that have not shown for too long. It returns the answers
// that have failed.
func (a *Asker) About(ctx context.Context, key string) (failed []answer) {
	ctx, cancel := context.WithTimeout(ctx, written.AskTimeout)
	defer cancel()
	answers := a.Barrier.questions(key)
	for i := range answers {
		got := &answers[i]
		waited := a.Barrier.Now() - got.at
		got.Answer, got.err = got.Ask(ctx, a.Server, got.by, got.by.GVR(), waited)
	}
	for _, got := range answers {
		if namespace, _ := written.SplitKey(got.Object); got.Listing {
			got.by.AwaitVersion(ctx, namespace, got.Version)
		}
	}
	if a.Barrier.apply(key, answers) {
		a.Wake(key)
		return nil
	}
	for _, got := range answers {
		if got.err != nil {
			failed = append(failed, got)
		}
	}
	return failed
}

func (a *Asker) log(key string, failed []answer) {
	for _, f := range failed {
		if more, ok := a.Lines.Allow(); ok {
			a.Logger.Warn("a key is held back, as the server cannot be asked about a write of it",
				append([]any{"key", key, "informer", f.by.Name(), "object", f.Object,
					"error", f.err}, more...)...)
		}
	}
}

// answer is the server's answer to a question about a write.
type answer struct {
	write // as it was when the server was asked
	written.Answer
	record *write // as it is now
	err    error
}

// nextToAsk returns the next key that the server is to be asked about.
func (b *Barrier) nextToAsk() (key string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.toAsk) == 0 {
		return "", false
	}
	key, b.toAsk = b.toAsk[0], b.toAsk[1:]
	return key, true
}

// questions returns the writes of a key that the server is to be asked about now.
func (b *Barrier) questions(key string) (all []answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.keys[key]
	if p == nil {
		return nil
	}
	b.checkKey(p)
	for w := range p.all(ofKey) {
		asks := w.Unknown || p.parked && !w.Conflict
		if !w.settled && asks && w.Due(w.by, p.since) <= b.Now() {
			all = append(all, answer{write: *w, record: w})
		}
	}
	return all
}

// apply applies the server's answers about the writes of a key. It reports whether the key no
// longer waits for a write.
func (b *Barrier) apply(key string, answers []answer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.keys[key]
	if p == nil {
		return true
	}
	p.asking, p.problem = false, nil
	for _, a := range answers {
		w := a.record
		switch {
		case w.settled || w.of != p:
		case a.err != nil:
			p.problem = a.err
		case a.Settled:
			p.unshown = true
			b.settle(w)
		case w.Unknown:
			w.Take(a.Answer)
			if w.asked = true; !w.Gone && w.mustShow() {
				b.noteVersion(w, w.Version)
			}
		}
	}
	if b.checkKey(p) {
		return true
	}
	for w := range p.all(ofKey) { // an outcome that is known now may be due soon
		if due := w.Due(w.by, p.since); !w.settled && due > b.Now() && due < p.due {
			b.schedule(p, due)
		}
	}
	b.setTimer()
	return false
}
