package simulation

import (
	"fmt"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
)

// resyncPeriods and policies are what handlers are added with.
var (
	resyncPeriods = []time.Duration{0, 0, 0, 10 * time.Minute, time.Hour}
	policies      = []tidings.Policy{
		tidings.PolicyConflateUpdates, tidings.PolicyConflateUpdates, tidings.PolicyConflateState,
		tidings.PolicyUnbounded, tidings.PolicyBlock,
	}
)

// join adds a handler.
func (w *world) join(s *subject) {
	if len(s.checkers) >= 4 {
		return
	}
	w.joined++
	h := &checker{held: map[string]string{}, HandlerOptions: tidings.HandlerOptions{
		Name: fmt.Sprint("checker-", w.joined), Limit: 1 + w.random.IntN(20), IsolatePanics: true,
		Resync: resyncPeriods[w.random.IntN(len(resyncPeriods))],
	}}
	if !s.dropIn {
		h.Policy = policies[w.random.IntN(len(policies))]
		h.panics = w.random.IntN(8) == 0
	}
	h.strips, h.Repeats = s.strips, s.strips
	if s.fakes {
		h.Before = func(string, string) bool { return false }
	}
	w.note("%+v joins %s, panics %v", h.HandlerOptions, s.kind, h.panics)
	var err error
	if h.registration, err = s.AddHandler(h.handle, h.HandlerOptions); err != nil {
		w.Fatal(err)
	}
	s.checkers = append(s.checkers, h)
}

// disturb blocks, frees or removes a handler.
func (w *world) disturb() {
	s := w.anySubject()
	if len(s.checkers) == 0 {
		return
	}
	n := w.random.IntN(len(s.checkers))
	h := s.checkers[n]
	switch w.random.IntN(5) {
	case 0:
		w.note("%s leaves %s", h.Name, s.kind)
		h.Unblock()
		h.registration.Remove()
		synctest.Wait()
		w.totals.counts["events"] += h.Calls()
		s.checkers = append(s.checkers[:n:n], s.checkers[n+1:]...)
	case 1, 2:
		w.note("%s of %s blocks", h.Name, s.kind)
		h.Block()
	default:
		w.note("%s of %s goes on", h.Name, s.kind)
		h.Unblock()
	}
}
