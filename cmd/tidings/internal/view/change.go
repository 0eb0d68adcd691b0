package view

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
)

// Type is what the view says of a type of objects.
type Type struct {
	// Kind names it to the server.
	Kind schema.GroupVersionKind
	// Singular and Plural are what one object and several are called.
	Singular, Plural string
	// Context names the cluster where objects of several are shown, and is "" where
	// there is one.
	Context string
}

// Change is one event of an informer of any type.
type Change struct {
	// At is when it was told.
	At time.Time
	// Of is the type of its object.
	Of Type
	// Event says what happened; Initial and Tombstone are as in tidings.Event.
	Event              tidings.EventType
	Initial, Tombstone bool
	// Old and New are the states before and after; nil where there is none.
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

// Handler returns a handler that hands on every event of an informer as a change.
// Resyncs change nothing and are left out.
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

// Fields returns an object as maps, which are not to be written to. It returns nil for
// an object that cannot be shown so.
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
