package caches

import "github.com/tidings-go/tidings"

// ObjectID names an object of an informer.
type ObjectID struct {
	Informer uint32
	Key      string
}

// State is a new state of an object in a cache.
type State struct {
	ObjectID
	Version string
	Deleted string // the UID of the object, if the state is its end
}

// StateOf returns the state that an event has brought.
func StateOf[S tidings.Object](f *Informer, e tidings.Event[S]) State {
	object := e.Object()
	s := State{ObjectID: ObjectID{f.Number, e.Key()}, Version: object.GetResourceVersion()}
	if e.Type == tidings.Deleted {
		s.Deleted = string(object.GetUID())
		if e.Tombstone { // its version is not that of the end
			s.Version = ""
		}
	}
	return s
}

// IsBy reports whether a write has led to the state: one with a version, or a delete of a UID.
func (s State) IsBy(version, uid string, gone bool) bool {
	if gone && uid != "" {
		return uid == s.Deleted
	}
	return version != "" && version == s.Version
}
