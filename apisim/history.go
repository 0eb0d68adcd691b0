package apisim

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// event is one write: the state before, nil for a create, and after, nil for a delete.
// Only its encoded frames change.
type event struct {
	version       uint64
	key           string
	before, after object

	mu     sync.Mutex // guards frames
	frames map[frameKey][]byte
}

// frameKey names one frame of an event.
type frameKey struct {
	form    form
	version string // of the API
	event   watch.EventType
}

// visible returns the type of the event and the object to send to a watch with a
// selection. An object that begins or ceases to match is added or deleted. The type is
// "" if the watch does not see the event.
func (e *event) visible(s objectSelection) (watch.EventType, object) {
	matched := e.before != nil && s.matches(e.before)
	matches := e.after != nil && s.matches(e.after)
	switch {
	case matches && matched:
		return watch.Modified, e.after
	case matches:
		return watch.Added, e.after
	case matched:
		return watch.Deleted, e.before
	default:
		return "", nil
	}
}

// frame returns the type of the event, "" if the watch does not see it, and its frame.
// A frame is encoded once for all watches of one form.
func (e *event) frame(r *resource, f form, s objectSelection) (watch.EventType, []byte, error) {
	kind, state := e.visible(s)
	if kind == "" {
		return "", nil, nil
	}
	key := frameKey{f, r.Version, kind}
	e.mu.Lock()
	defer e.mu.Unlock()
	if frame, ok := e.frames[key]; ok {
		return kind, frame, nil
	}
	if kind == watch.Deleted {
		state = atVersion(state, e.version)
	}
	frame, err := encodeEvent(r, f, kind, state)
	if err != nil {
		return "", nil, err
	}
	if e.frames == nil {
		e.frames = make(map[frameKey][]byte, 1)
	}
	e.frames[key] = frame
	return kind, frame, nil
}

// newBookmark returns an object that has a version and nothing else.
func newBookmark(r *resource, version uint64, endsInitial bool) (object, error) {
	obj, err := r.newObject()
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion(versionString(version))
	if endsInitial {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return obj, nil
}
