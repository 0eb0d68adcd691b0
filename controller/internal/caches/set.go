package caches

import (
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// Set has the informers of a controller. The zero value is empty.
type Set struct {
	informers atomic.Pointer[[]*Informer] // the slice is not modified
	numbers   uint32                      // the number of the next informer
}

// All returns the informers, the primary first. The slice must not be modified.
func (s *Set) All() []*Informer {
	if all := s.informers.Load(); all != nil {
		return *all
	}
	return nil
}

// Primary returns the informer of the controller's objects.
func (s *Set) Primary() *Informer { return s.All()[0] }

// Has reports whether a *tidings.Informer is in the set.
func (s *Set) Has(informer any) bool {
	return slices.ContainsFunc(s.All(), func(f *Informer) bool { return f.Handle == informer })
}

// Add numbers an informer and adds it.
func (s *Set) Add(f *Informer) {
	f.Number = s.numbers
	s.numbers++
	all := append(slices.Clone(s.All()), f)
	s.informers.Store(&all)
}

// Remove removes the secondaries of a *tidings.Informer and returns them.
func (s *Set) Remove(informer any) (removed []*Informer) {
	kept := slices.DeleteFunc(slices.Clone(s.All()), func(f *Informer) bool {
		if f.Number == 0 || f.Handle != informer {
			return false
		}
		removed = append(removed, f)
		return true
	})
	s.informers.Store(&kept)
	for _, f := range removed {
		f.remove()
	}
	return removed
}

// Of returns the first informer of a group and resource that has whole objects, or else the first
// one; nil without one.
func (s *Set) Of(r schema.GroupResource) (first *Informer) {
	for _, f := range s.All() {
		switch {
		case !f.IsOf(r):
		case f.IsWhole():
			return f
		case first == nil:
			first = f
		}
	}
	return first
}

// NameOf returns the name of the informer with a number, "" if it was removed.
func (s *Set) NameOf(number uint32) string {
	for _, f := range s.All() {
		if f.Number == number {
			return f.Name()
		}
	}
	return ""
}

// NeededBy returns the namespace whose keys alone need the objects of an informer in a namespace;
// "" if other keys may need them. If the primary is watched in that namespace by itself, or if both
// hold only the namespaces of some slots, the objects belong to the keys there.
func (s *Set) NeededBy(f *Informer, namespace string) string {
	if f.HoldsSlots() || f.Number == 0 || slices.Contains(s.Primary().Namespaces(), namespace) {
		return namespace
	}
	return ""
}

// HoldsSlots reports whether the informer holds only the namespaces of some slots.
func (f *Informer) HoldsSlots() bool {
	return f.Slots() != nil && f.Slots().Key() == slot.Namespace
}

// Raise sets the version of a part, if the new one is later, or the known one is no number.
func Raise(versions map[string]string, part, version string) {
	if version != "" {
		versions[part] = Newer(versions[part], version)
	}
}

// Newer returns a version if it is later than a known one, or if the known one is no number.
func Newer(known, version string) string {
	_, isNumber := delta.CompareDecimal(known, known)
	order, ok := delta.CompareDecimal(version, known)
	if version != "" && (!isNumber || ok && order > 0) {
		return version
	}
	return known
}

// Older returns the lower one of a known version, which may be "", and another one.
func Older(known, version string) string {
	if order, ok := delta.CompareDecimal(known, version); known == "" || ok && order <= 0 {
		return known
	}
	return version
}
