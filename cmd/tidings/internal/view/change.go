package view

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
)

// Type is a type of objects.
type Type struct {
	// Kind is the kind of the objects.
	Kind schema.GroupVersionKind
	// Singular and Plural are the names of the type.
	Singular, Plural string
	// Context is the context of the cluster if several clusters are shown, "" otherwise.
	Context string
}

// Change is one event of an informer of any type.
type Change struct {
	// At is the time at which the event arrived.
	At time.Time
	// Of is the type of the object.
	Of Type
	// Event, Initial and Tombstone are those of tidings.Event.
	Event              tidings.EventType
	Initial, Tombstone bool
	// Old and New are the states before and after; nil if there is no such state.
	Old, New tidings.Object
}

// Object returns the newest state.
func (c Change) Object() tidings.Object {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Name returns namespace/name, or the name alone.
func (c Change) Name() string {
	obj := c.Object()
	if namespace := obj.GetNamespace(); namespace != "" {
		return namespace + "/" + obj.GetName()
	}
	return obj.GetName()
}

// Handler returns a handler that passes every event of an informer on as a change, except
// resyncs.
func Handler[T tidings.Object](of Type, take func(Change)) tidings.Handler[T] {
	return tidings.HandlerFunc[T](func(e tidings.Event[T]) {
		if e.Resync {
			return
		}
		c := Change{At: time.Now(), Of: of, Event: e.Type, Initial: e.Initial, Tombstone: e.Tombstone}
		if e.Type != tidings.Added {
			c.Old = e.Old
		}
		if e.Type != tidings.Deleted {
			c.New = e.New
		}
		take(c)
	})
}

// Fields returns an object as maps, which must not be changed. It returns nil for an object that
// cannot be converted.
func Fields(obj tidings.Object) map[string]any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	return fields
}
