package apisim

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// event is one write: the state before, nil for a create, and after, nil for a
// delete. It is immutable but for its encoded frames.
type event struct {
	version       uint64
	key           string
	before, after object

	mu     sync.Mutex // guards frames
	frames map[frameKey][]byte
}

// frameKey says what a frame of an event depends on.
type frameKey struct {
	form    form
	version string // of the API, in which the object is shown
	kind    string // ADDED, MODIFIED or DELETED
}

func newEvent(version uint64, key string, before, after object) *event {
	return &event{version: version, key: key, before: before, after: after}
}

// seen returns the type of the event, and the state to send, for a watch with a
// selection. An object that begins or ceases to match is added or deleted. The
// empty type says that the watch does not see the event.
func (e *event) seen(s selection) (kind string, state object) {
	matched := e.before != nil && s.matches(e.before)
	matches := e.after != nil && s.matches(e.after)
	switch {
	case matches && matched:
		return "MODIFIED", e.after
	case matches:
		return "ADDED", e.after
	case matched:
		return "DELETED", atVersion(e.before, e.version)
	default:
		return "", nil
	}
}

// frame returns the encoded event and its type, encoded once for all watches of one
// form. The empty type says that the watch does not see the event.
func (e *event) frame(r *resource, f form, s selection) (kind string, data []byte, err error) {
	kind, state := e.seen(s)
	if kind == "" {
		return "", nil, nil
	}
	key := frameKey{f, r.Version, kind}
	e.mu.Lock()
	defer e.mu.Unlock()
	if frame, ok := e.frames[key]; ok {
		return kind, frame, nil
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

// bookmarkOf returns an object that has a version and nothing else.
func bookmarkOf(scheme *runtime.Scheme, r *resource, f form, version uint64, endsInitial bool) (object, error) {
	obj, err := f.empty(scheme, r)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion(versionString(version))
	if endsInitial {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return obj, nil
}
