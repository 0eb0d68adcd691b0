package dedup

import (
	"fmt"
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Sharer replaces the parts of objects that other objects have, too. It is for objects
// that another program part has decoded or made. Several goroutines may use it at once.
type Sharer struct {
	table *Table
	o     SharerOptions

	shared, alone atomic.Int64
	why           atomic.Pointer[error]
}

// SharerOptions configure a sharer. The zero value shares all.
type SharerOptions struct {
	// Sharing selects the parts that are shared; 0 means ShareAll.
	Sharing Sharing
	// NoSecrets states that there are no Secrets among objects without a kind, which metadata
	// and a program's own structs often are. Without it, those are left alone: maps,
	// metadata, and structs of Go types outside k8s.io/api that have a field for the data of
	// a Secret, or no field that Secrets lack.
	NoSecrets bool
}

// NewSharer returns a sharer that shares with all sharers of the table, each type of object
// with its own. It is cheap: the table keeps the compiled types.
func NewSharer(table *Table, o SharerOptions) *Sharer {
	table.init()
	return &Sharer{table: table, o: o}
}

// Share returns an object that is deeply equal to obj. Its parts that other objects have, too, are
// in memory once: they must not be changed. obj itself is not written to, and no part of it becomes
// part of another object. Where nothing can be shared, obj itself is returned.
func (s *Sharer) Share(obj any) any {
	if s.o.Sharing.off() {
		return s.leave(obj, errSharesNothing)
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem().Kind() != reflect.Struct {
		return s.leave(obj, fmt.Errorf("%T is not a pointer to a struct", obj))
	}
	t := v.Type().Elem()
	plan := s.table.plans.plan(t, cut{}, inMemory)
	err := plan.err
	if err == nil {
		err = checkKind(obj, plan.mayHoldSecret && !s.o.NoSecrets)
	}
	if err != nil {
		return s.leave(obj, err)
	}
	w := plan.sharers.take(s.o.Sharing, func() *shareWorker {
		return newShareWorker(s.table, plan, s.o.Sharing)
	})
	tag := noTag
	if o, ok := obj.(metav1.Object); ok {
		tag = tagOf([]byte(o.GetUID()))
	}
	at := w.share(v.UnsafePointer(), tag)
	plan.sharers.give(w, s.o.Sharing)
	s.shared.Add(1)
	if at == v.UnsafePointer() {
		return obj
	}
	return reflect.NewAt(t, at).Interface()
}

func (s *Sharer) leave(obj any, why error) any {
	s.alone.Add(1)
	if s.why.Load() == nil {
		s.why.Store(&why)
	}
	return obj
}

// SharerStats count the objects of a sharer.
type SharerStats struct {
	// Shared objects were searched for parts that others have.
	Shared int64 `json:"shared,omitzero"`
	// Alone objects were left as they were, and WhyAlone is the reason of the first one. Healthy
	// is 0 or all.
	Alone    int64 `json:"alone,omitzero"`
	WhyAlone error `json:"-"`
}

// Add adds the counts of another sharer. The order of sharers does not matter.
func (s *SharerStats) Add(other SharerStats) {
	s.Shared += other.Shared
	s.Alone += other.Alone
	s.WhyAlone = Reason(s.WhyAlone, other.WhyAlone)
}

// Reason returns one of two reasons, in whichever order they are given: that whose text comes
// first.
func Reason(a, b error) error {
	if a == nil || b != nil && b.Error() < a.Error() {
		return b
	}
	return a
}

// Stats returns the sharer's counts.
func (s *Sharer) Stats() SharerStats {
	stats := SharerStats{Shared: s.shared.Load(), Alone: s.alone.Load()}
	if why := s.why.Load(); why != nil {
		stats.WhyAlone = *why
	}
	return stats
}
