package simulation

import (
	"context"
	"slices"
	"testing/synctest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// holding is the slots of all informers that are divided by one key.
type holding struct {
	*tidings.Slots
	left tidings.SlotSet // the slots that were removed since the last audit
}

// newHolding returns random slots of a key.
func (w *world) newHolding(key tidings.SlotKey) *holding {
	set := w.anySlots(key)
	w.note("slots %s: %v", key, set)
	return &holding{Slots: tidings.NewSlots(key, set)}
}

// anySlots returns random slots.
func (w *world) anySlots(key tidings.SlotKey) (set tidings.SlotSet) {
	if key == tidings.ByNamespace {
		for _, namespace := range namespaces {
			if w.random.IntN(2) == 0 {
				set.Add(key.Of("", namespace))
			}
		}
		return set
	}
	for n := range 256 {
		if w.random.IntN(3) == 0 {
			set.Add(n)
		}
	}
	return set
}

// divide changes the slots or the namespaces of an informer, if it has any.
func (w *world) divide(s *subject) {
	_, changes := s.Informer.(divider)
	changes = changes && len(s.scope.namespaces) > 0
	switch {
	case s.scope.slots == nil && !changes:
	case s.scope.slots == nil, changes && w.random.IntN(2) == 0:
		w.changeNamespaces(s)
	case w.random.IntN(3) == 0:
		w.removeSlots(s.scope.slots)
	default:
		w.addSlots(s.scope.slots)
	}
}

// change notes that the informers with some slots have others than at the last audit.
func (w *world) change(slots *holding) {
	for _, s := range w.subjects {
		s.divided = s.divided || s.scope.slots == slots
	}
}

func (w *world) removeSlots(slots *holding) {
	set := w.anySlots(slots.Key())
	w.note("remove slots %s %v", slots.Key(), set)
	w.met("Slots.Remove", 1)
	w.change(slots)
	slots.left = slots.left.Union(set)
	slots.Remove(set)
}

// addSlots adds slots. In half of the cases the lists of the next minute are old when they arrive,
// in a quarter the context may end before.
func (w *world) addSlots(slots *holding) {
	set := w.anySlots(slots.Key())
	w.note("add slots %s %v", slots.Key(), set)
	w.met("Slots.Add", 1)
	w.change(slots)
	if w.random.IntN(2) == 0 {
		w.inject("old lists", apisim.Match{Verb: "list", Times: 3}, apisim.Stall(1, w.between(0, 60)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	if w.random.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, w.between(0, 300))
	}
	come, complete := set.Minus(slots.Slots.Slots()), w.complete(slots)
	added := make(chan error, 1)
	go func() {
		defer cancel()
		added <- slots.Add(ctx, set)
	}()
	synctest.Wait()
	select {
	case err := <-added:
		if w.added(err); err == nil {
			w.auditAdd(complete, come)
		}
	default:
		w.adding = append(w.adding, added)
	}
}

// added counts a result of Add.
func (w *world) added(err error) {
	if err != nil {
		w.note("Add: %v", err)
		w.totals.counts["additions of slots with an error"]++
		return
	}
	w.totals.counts["additions of slots"]++
}

// collectAdds checks that every Add has returned.
func (w *world) collectAdds() {
	for _, added := range w.adding {
		select {
		case err := <-added:
			w.added(err)
		default:
			w.Error("Add of slots has not returned")
		}
	}
	w.adding = nil
}

// complete returns the informers whose caches have to hold all objects of slots when Add returns
// at once: they are synced, read from one server, which does not lag, and no namespace has come
// since the last audit.
func (w *world) complete(slots *holding) (found []*subject) {
	if len(w.instances) > 0 || w.isActive("Lag") {
		return nil
	}
	for _, s := range w.subjects {
		if s.Informer != nil && s.scope.slots == slots && !s.renamed && !s.optional && !s.refuses && s.code == nil &&
			s.Health().Synced {
			found = append(found, s)
		}
	}
	return found
}

// auditAdd compares caches with the server when Add has returned at once.
func (w *world) auditAdd(complete []*subject, come tidings.SlotSet) {
	for _, s := range complete {
		cache := s.state()
		for key, state := range w.serverState(s.scope) {
			namespace, _ := splitKey(key)
			if _, ok := cache[key]; !ok && s.scope.slots.Key().In(come, follow.UID(state), namespace) {
				w.Errorf("%s: S2: Add has returned, and the cache lacks %s %s", s.kind, key, state)
			}
		}
		w.totals.counts["additions compared"]++
	}
}

// divider is an informer whose namespaces can be added and removed.
type divider interface {
	AddNamespace(namespace string) error
	RemoveNamespace(namespace string) error
}

// changeNamespaces adds or removes a namespace of an informer.
func (w *world) changeNamespaces(s *subject) {
	namespace, held := namespaces[w.random.IntN(len(namespaces))], slices.Clone(s.scope.namespaces)
	at, change := slices.Index(held, namespace), s.Informer.(divider).AddNamespace
	switch {
	case at < 0:
		w.note("%s gets the namespace %s", s.kind, namespace)
		w.met("AddNamespace", 1)
		held = append(held, namespace)
	case len(held) == 1:
		return
	default:
		w.note("%s loses the namespace %s", s.kind, namespace)
		w.met("RemoveNamespace", 1)
		held, change = slices.Delete(held, at, at+1), s.Informer.(divider).RemoveNamespace
	}
	s.scope.namespaces, s.divided, s.renamed = held, true, true
	if err := change(namespace); err != nil {
		w.Errorf("%s: %v", s.kind, err)
	}
}

// auditMoves checks that deletes are marked as moved if a slot has left, and only then.
func (w *world) auditMoves(s *subject, name string, events []follow.Event) {
	slots := s.scope.slots
	if slots == nil {
		return
	}
	otherwise := s.renamed || s.optional || s.scope.hides || w.writeLog.hasGap(s.scope.resource)
	for _, e := range events {
		namespace, _ := splitKey(e.Key)
		switch uid := follow.UID(e.Old); {
		case e.Type != tidings.Deleted:
		case e.Moved && !slots.Key().In(slots.left, uid, namespace):
			w.Errorf("%s: S6: %v of %s, whose slot was not removed", name, e, e.Old)
		case !e.Moved && !otherwise && !w.writeLog.deleted(uid):
			w.Errorf("%s: S6: %v of %s, which was not deleted", name, e, e.Old)
		}
	}
}
