package follow

import (
	"fmt"
	"strings"

	"github.com/tidings-go/tidings"
)

// LabelName is the label that tells the states of an object apart.
const LabelName = "n"

// StateOf returns the state of an object: its label n, its version and its UID, as in
// "3@17#uid".
func StateOf(obj tidings.Object) string {
	return obj.GetLabels()[LabelName] + "@" + obj.GetResourceVersion() + "#" + string(obj.GetUID())
}

// Label returns the label n of a state.
func Label(state string) string {
	label, _, _ := strings.Cut(state, "@")
	return label
}

// Version returns the resource version of a state.
func Version(state string) string {
	_, rest, _ := strings.Cut(state, "@")
	version, _, _ := strings.Cut(rest, "#")
	return version
}

// UID returns the UID of a state.
func UID(state string) string {
	_, uid, _ := strings.Cut(state, "#")
	return uid
}

// Event is a [tidings.Event] without its type parameter.
type Event struct {
	Type                       tidings.EventType
	Initial, Tombstone, Resync bool
	Moved                      bool // of a Tombstone
	Key                        string
	Old, New                   string // states; "" for an absent one
	Same                       bool   // Old and New are one object
}

// EventOf returns an event of an informer.
func EventOf[T tidings.Object](e tidings.Event[T]) Event {
	event := Event{
		Type: e.Type, Initial: e.Initial, Tombstone: e.Tombstone, Resync: e.Resync, Key: e.Key(),
		Moved: e.Moved,
		Same:  any(e.Old) == any(e.New),
	}
	if e.Type != tidings.Added {
		event.Old = StateOf(e.Old)
	}
	if e.Type != tidings.Deleted {
		event.New = StateOf(e.New)
	}
	return event
}

// String returns the event with the labels of its states, as in "Updated default/a 1→2".
func (e Event) String() string {
	text := fmt.Sprintf("%v %s", e.Type, e.Key)
	switch {
	case e.Resync:
		text += " resync"
	case e.Initial:
		text += " initial"
	case e.Moved:
		text += " moved"
	case e.Tombstone:
		text += " tombstone"
	}
	switch e.Type {
	case tidings.Added:
		return text + " " + Label(e.New)
	case tidings.Deleted:
		return text + " " + Label(e.Old)
	default:
		return text + " " + Label(e.Old) + "→" + Label(e.New)
	}
}
