package controller

import (
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// toAsk returns the next key that the server is to be asked about.
func (b *barrier[T]) toAsk() (key string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) == 0 {
		return "", false
	}
	key, b.asked = b.asked[0], b.asked[1:]
	return key, true
}

// answer is the server's answer to a question about a write.
type answer struct {
	awaited // as it was when the server was asked
	written.Answer
	record *awaited // as it is now
	err    error
}

// questions returns the writes of a key that the server is to be asked about now.
func (b *barrier[T]) questions(key string) (all []answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.keys[key]
	if p == nil {
		return nil
	}
	b.prune(p)
	for w := range p.all(ofKey) {
		asks := w.Unknown || p.parked && !w.Conflict
		if !w.shown && asks && w.Due(w.by, p.since) <= b.now() {
			all = append(all, answer{awaited: *w, record: w})
		}
	}
	return all
}

// settle applies the server's answers about the writes of a key. It reports whether the key no
// longer waits for a write.
func (b *barrier[T]) settle(key string, answers []answer) bool {
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
		case w.shown || w.of != p:
		case a.err != nil:
			p.problem = a.err
		case a.Settled:
			p.unshown = true
			b.show(w)
		case w.Unknown:
			w.Take(a.Answer)
			if w.asked = true; !w.Gone && w.mustShow() {
				b.shows(w, w.Version)
			}
		}
	}
	if b.prune(p) {
		return true
	}
	for w := range p.all(ofKey) { // an outcome that is known now may be due soon
		if due := w.Due(w.by, p.since); !w.shown && due > b.now() && due < p.due {
			b.schedule(p, due)
		}
	}
	b.setTimer()
	return false
}

// doubt has the server asked about the writes that wait for a cache, which follows another history of the
// server: some may have been made in the one before. It returns the keys that are no longer held back.
func (b *barrier[T]) doubt(by *caches.Informer) (wake []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lower(by)
	for key, p := range b.keys {
		wasHeld := p.open > 0
		for w := range p.all(ofKey) {
			if w.by == by {
				b.look(w, b.now())
			}
			if w.by == by && !w.shown {
				w.Unknown, w.Conflict, w.Until, w.echoed = true, false, b.now(), true
			}
		}
		switch {
		case p.parked && p.open > 0:
			b.plan(p)
		case p.parked && wasHeld:
			wake = append(wake, key)
		}
		b.drop(p)
	}
	b.setTimer()
	return wake
}
