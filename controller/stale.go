package controller

import (
	"cmp"
	"maps"

	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// checkStaleness finds the namespaces of informers that have received nothing for longer than
// MaxStaleness, and wakes the keys for which every informer has what calls need again.
func (r *run[T]) checkStaleness() {
	stale := map[string]string{}
	for _, f := range r.c.informers.All() {
		for _, namespace := range f.Namespaces() {
			if r.isFollowed(f) && f.IsSilent(namespace, r.c.o.MaxStaleness) {
				stale[r.c.informers.NeededBy(f, namespace)] = f.Name()
			}
		}
	}
	admitted := r.admit()
	r.lagging.update(r)
	r.stale.Store(&stale)
	for _, f := range admitted {
		f.Admitted.Store(true)
	}
	ready := false
	r.heldUp.Range(func(namespace, _ any) bool {
		if r.heldUpBy(namespace.(string)) == "" {
			r.heldUp.Delete(namespace)
			ready = true
		}
		return true
	})
	if ready {
		r.queue.WakeAll()
	}
}

// isHeldUp reports whether no call for a key may begin, because of an informer. checkStaleness wakes the
// key then.
func (r *run[T]) isHeldUp(key string) bool {
	namespace, _ := written.SplitKey(key)
	if r.heldUpBy(namespace) == "" {
		return false
	}
	r.heldUp.Store(namespace, nil)
	return true
}

// heldUpBy returns the name of an informer that holds up the calls for the keys of a namespace: it is out
// of contact for too long, it lacks the objects of a namespace that was added, or it does not show what was
// written before. It returns "" without one.
func (r *run[T]) heldUpBy(namespace string) string {
	holding := r.holding()
	if name := cmp.Or(holding[namespace], holding[""]); name != "" {
		return name
	}
	for _, f := range r.c.informers.All() {
		if f.IsMissing(namespace) || !f.Admitted.Load() && len(r.lacking(f)) > 0 {
			return f.Name()
		}
	}
	return ""
}

// holding maps each namespace whose keys an informer holds up to its name: it is out of contact for too long,
// or does not show what was written before. The namespace "" is all.
func (r *run[T]) holding() map[string]string {
	holding, lagging := *r.stale.Load(), r.lagging.all()
	if len(lagging) == 0 {
		return holding
	}
	holding = maps.Clone(holding)
	for _, u := range lagging {
		if u.holdsUp() {
			holding[r.c.heldUpBy(u)] = u.Name()
		}
	}
	return holding
}

// lacking returns the versions that calls, or the last owners, have written before the cache of an informer
// could be read, and that it may not show.
func (r *run[T]) lacking(f *caches.Informer) (behind []unreached[T]) {
	resource := f.GVR()
	if resource.Empty() || r.c.o.Guard == nil { // without a guard the server cannot be asked
		return nil
	}
	for _, namespace := range f.Namespaces() {
		u := unreached[T]{f, namespace, r.barrier.LastWrite(resource.GroupResource(), f.Part(namespace))}
		if !u.isOver() {
			behind = append(behind, u)
		}
	}
	return behind
}

// admit returns the informers whose caches can be read since the last check, and adds what they lack to
// the versions that hold up calls.
func (r *run[T]) admit() (admitted []*caches.Informer) {
	for _, f := range r.c.informers.All() {
		if !f.Admitted.Load() && !f.GVR().Empty() {
			admitted = append(admitted, f)
			r.lagging.add(r.lacking(f)...)
		}
	}
	return admitted
}
