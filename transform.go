package tidings

import (
	"fmt"
	"reflect"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// Transform replaces objects of one type before they are cached, for example by
// smaller ones. Make one with [NewTransform].
type Transform struct {
	objectType reflect.Type
	call       any // func(T) (T, error)
}

// NewTransform returns a transform for informers of T. The function owns the
// object that it receives and may change it. Where it fails, panics or returns nil, the state
// before stays in the cache and Health counts it. It must keep the name and the
// namespace of the object, and should keep its resourceVersion and uid: without
// them, old states cannot be told from new ones. To change one of these is a failure.
//
// An informer calls the function for one object at a time; informers that share it call it at the
// same time.
func NewTransform[T Object](f func(T) (T, error)) *Transform {
	return &Transform{objectType: reflect.TypeFor[T](), call: f}
}

// transformOf returns the function of a transform, if it is one for T.
func transformOf[T Object](t *Transform) (func(T) (T, error), error) {
	if t == nil {
		return nil, nil
	}
	f, ok := t.call.(func(T) (T, error))
	if !ok || f == nil {
		return nil, fmt.Errorf("%w: the transform is for %v, the informer holds %v: "+
			"make it with NewTransform and a function of that type",
			ErrInvalidSelection, t.objectType, reflect.TypeFor[T]())
	}
	return f, nil
}

// checkIdentity returns an error if the result of a transform is not a state of the object that
// was received: another name would be found under the key of that object, and another version
// would make later states look older.
func checkIdentity[T Object](received source.Item[T], made T) (T, error) {
	if source.Key(made.GetNamespace(), made.GetName()) != received.Key {
		return made, fmt.Errorf("it made another object of it, %q in namespace %q: "+
			"keep the name and the namespace", made.GetName(), made.GetNamespace())
	}
	if version := made.GetResourceVersion(); version != "" && version != received.Version {
		return made, fmt.Errorf("it changed the resourceVersion from %q to %q: keep it or remove it",
			received.Version, version)
	}
	if uid := string(made.GetUID()); uid != "" && uid != received.UID {
		return made, fmt.Errorf("it changed the uid from %q to %q: keep it or remove it",
			received.UID, uid)
	}
	return made, nil
}

// keepUID returns an error if the result of a transform has not the UID by which its slot is known.
func keepUID[T Object](received source.Item[T], made T) (T, error) {
	made, err := checkIdentity(received, made)
	if err == nil && string(made.GetUID()) != received.UID {
		err = slot.ErrNoUID
	}
	return made, err
}
