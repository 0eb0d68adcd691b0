package ctrlruntime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/lead/written"
)

const (
	// behindAfter is the time for which a read waits for a cache that could show a write.
	behindAfter = 30 * time.Second
	// sweepAfter is the period at which reads prune the writes of all places.
	sweepAfter = time.Second
)

// writes holds the writes of a client until the caches show them. Times are since epoch.
type writes struct {
	server    *guard.Guard
	informers *InformerSet
	epoch     time.Time
	open      atomic.Int64 // the number of writes

	mu     sync.Mutex         // guards the rest; taken before that of informers
	places map[place][]*write // in the order in which they were recorded
	swept  time.Duration
}

// place is the resource and the namespace of an object.
type place struct {
	resource  schema.GroupResource
	namespace string
}

// write is a write that an informer may not show.
type write struct {
	place
	written.Write               // the mutex of writes guards it
	settled       []*member     // informers that need not show it; guarded too
	asking        chan struct{} // has a value while the server is being asked
}

func newWrites(server *guard.Guard, informers *InformerSet) *writes {
	return &writes{
		server: server, informers: informers, epoch: time.Now(), places: map[place][]*write{},
	}
}

func (s *writes) now() time.Duration { return time.Since(s.epoch) }

func (s *writes) none() bool { return s.open.Load() == 0 }

// record adds writes. They replace the earlier writes of their objects that need no wait any
// more.
func (s *writes) record(all []guard.Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		w := &write{
			place: place{all[i].Resource, all[i].Namespace},
			Write: written.Of(&all[i], s.epoch), asking: make(chan struct{}, 1),
		}
		kept := slices.DeleteFunc(s.places[w.place], func(earlier *write) bool {
			isReplaced := w.Replaces(&earlier.Write) || w.Recreates(&earlier.Write)
			if isReplaced {
				s.open.Add(-1)
			}
			return isReplaced
		})
		s.places[w.place] = append(kept, w)
		s.open.Add(1)
		s.pruneLocked(w.place)
	}
}

// pruneLocked forgets the writes of a place that all informers show. An informer that is made
// later reads the newest state first, so that it shows every write whose request has ended. The
// end of an object is not forgotten before its earlier writes: an informer without the object may
// show them later.
func (s *writes) pruneLocked(at place) {
	holders := s.informers.members()
	holders = slices.DeleteFunc(holders, func(m *member) bool { return !m.shows(at) })
	open := map[string]bool{}
	kept := slices.DeleteFunc(s.places[at], func(w *write) bool {
		isShown := !(w.Gone && open[w.Object])
		if len(holders) == 0 {
			isShown = !w.Unknown || s.now() >= w.Until
		}
		for _, m := range holders {
			isShown = isShown && s.isShownLocked(m, w)
		}
		open[w.Object] = open[w.Object] || !isShown
		if isShown {
			s.open.Add(-1)
		}
		return isShown
	})
	if s.places[at] = kept; len(kept) == 0 {
		delete(s.places, at)
	}
}

func (s *writes) isShownLocked(m *member, w *write) bool {
	return slices.Contains(w.settled, m) || w.Held(m, s.now())
}

func (s *writes) isShown(m *member, w *write) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isShownLocked(m, w)
}

func (s *writes) state(w *write) written.Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.Write
}

// await waits until informers show the writes of an object. For the name "" it waits for the writes
// of all objects in the namespace, and for the namespace "" for those in all namespaces.
func (s *writes) await(ctx context.Context, informers []*member, namespace, name string) error {
	for _, m := range informers {
		for _, w := range s.unshown(m, namespace, name) {
			if err := s.awaitOne(ctx, m, w); err != nil {
				return err
			}
		}
	}
	s.sweep()
	return nil
}

// unshown returns the writes that a read of an informer waits for.
func (s *writes) unshown(m *member, namespace, name string) (all []*write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := func(at place) {
		for _, w := range s.places[at] {
			_, of := written.SplitKey(w.Object)
			if name == "" || of == "" || of == name {
				all = append(all, w)
			}
		}
	}
	if namespace != "" {
		resource := m.holds().GroupResource()
		in(place{resource, namespace})
		in(place{resource, ""}) // the namespace of a key is ignored for a type without namespaces
		return all
	}
	for at := range s.places {
		if m.shows(at) {
			in(at)
		}
	}
	return all
}

// sweep drops the writes that all informers show, at most once per sweepAfter.
func (s *writes) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now-s.swept >= sweepAfter {
		s.swept = now
		for at := range s.places {
			s.pruneLocked(at)
		}
	}
}

// awaitOne waits until an informer shows a write.
func (s *writes) awaitOne(ctx context.Context, m *member, w *write) error {
	began := s.now()
	state := s.state(w)
	due := state.Due(m, began)
	var problem error
	for {
		end := max(began, state.Until) + behindAfter
		wait, cancel := context.WithTimeout(ctx, min(due, end)-s.now())
		err := m.Await(wait, func() (bool, error) { return s.isShown(m, w), nil })
		cancel()
		switch {
		case err == nil || m.Over() != nil || s.isShown(m, w):
			s.mu.Lock()
			s.pruneLocked(w.place)
			s.mu.Unlock()
			return nil
		case ctx.Err() != nil:
			return behind(m, w.resource, state, context.Cause(ctx), problem)
		case s.now() >= end:
			return behind(m, w.resource, state, ErrBehind, problem)
		}
		problem = s.ask(ctx, m, w, state, began)
		asked := state
		if state = s.state(w); state != asked {
			due = state.Due(m, s.now())
		} else {
			due = s.now() + written.AskAgain
		}
	}
}

// behind returns the error of a read whose wait was not successful. problem is the error of asking
// the server, if there was one.
func behind(m *member, of schema.GroupResource, state written.Write, err, problem error) error {
	h := m.Health()
	what := fmt.Sprintf("version %s", state.Version)
	switch {
	case state.Unknown:
		what = "a write whose outcome is not known"
	case state.Gone:
		what = fmt.Sprintf("the end of UID %s", state.UID)
	}
	if problem != nil {
		err = fmt.Errorf("%w (%w)", err, problem)
	}
	return fmt.Errorf("the cache has to show %s of %s %s first, is at %q and %s: %w",
		what, of, state.Object, h.Version, h.State, err)
}

// ask asks the server about a write that is waited for since began, unless its state has changed
// meanwhile.
func (s *writes) ask(ctx context.Context, m *member, w *write, state written.Write,
	began time.Duration) error {
	select {
	case w.asking <- struct{}{}:
		defer func() { <-w.asking }()
	case <-ctx.Done():
		return nil
	}
	if s.isShown(m, w) || s.state(w) != state {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, written.AskTimeout)
	defer cancel()
	a, err := state.Ask(ctx, s.server, m, m.holds(), s.now()-began)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return err
	case a.Settled:
		w.settled = append(w.settled, m)
	case w.Unknown:
		w.Take(a)
	}
	return nil
}
