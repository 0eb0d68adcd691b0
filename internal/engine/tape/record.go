package tape

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of a record.
type Kind uint8

// The kinds of records.
const (
	// List is the request for a page of a list, and Page its answer.
	List Kind = iota + 1
	Page
	// Watch is the request for a watch, and Begun its answer.
	Watch
	Begun
	// Listed are objects of a streamed list, and Event is an event of a watch.
	Listed
	Event
	// Failed is the failure of a list or a watch, and the end of a watch.
	Failed
	// Closed is the end of a watch by its reader.
	Closed
)

var kinds = names{"", "list", "page", "watch", "begun", "listed", "event", "failed", "closed"}

// String returns the name of the kind.
func (k Kind) String() string { return kinds[k] }

// MarshalText returns the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(kinds[k]), nil }

// UnmarshalText reads a name.
func (k *Kind) UnmarshalText(text []byte) error {
	at, err := kinds.find("kind", text)
	*k = Kind(at)
	return err
}

// Form is the form in which a record has an object.
type Form uint8

// The forms of objects.
const (
	// Protobuf and JSON are frames as they came from the server.
	Protobuf Form = iota + 1
	JSON
	// Encoded is an object in JSON that was encoded for the recording.
	Encoded
	// Identity is an object without its fields: see [Object].
	Identity
)

var forms = names{"", "protobuf", "json", "encoded", "identity"}

// String returns the name of the form.
func (f Form) String() string { return forms[f] }

// MarshalText returns the name of the form.
func (f Form) MarshalText() ([]byte, error) { return []byte(forms[f]), nil }

// UnmarshalText reads a name.
func (f *Form) UnmarshalText(text []byte) error {
	at, err := forms.find("form", text)
	*f = Form(at)
	return err
}

// names are those of the values of a type, by value.
type names []string

func (n names) find(what string, text []byte) (int, error) {
	at := slices.Index(n, string(text))
	if at <= 0 {
		return 0, fmt.Errorf("a record of the unknown %s %.40q", what, text)
	}
	return at, nil
}

// EventTypes are the names of the types of events, in the order of source.EventType.
var EventTypes = [...]string{
	"", "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "INITIAL_EVENTS_END",
}

// Record is one thing that a source was asked for or brought.
type Record struct {
	// At is when it occurred, since the beginning of the ring.
	At   time.Duration
	Kind Kind
	// Type is the type of an event: an index of [EventTypes].
	Type uint8
	// Form is the form of Data; 0 without an object.
	Form Form
	// LeftOut reports whether Data was too large for the ring.
	LeftOut bool
	// Key is the key of the object of an event.
	Key string
	// Version is that of a bookmark, or of a page.
	Version string
	// Data is an object in its form, or identities: see [AppendIdentity].
	Data []byte
	// Object is an object that will be encoded for the recording. Nothing changes it.
	Object any
	// More is nil in most records.
	More *More
}

// More are the fields that few records need.
type More struct {
	// Request describes a List or a Watch.
	Request *Request `json:"request,omitempty"`
	// Continue and Remaining are those of a Page.
	Continue  string `json:"continue,omitempty"`
	Remaining int64  `json:"remaining,omitempty"`
	// Partial reports whether the next Page has more objects of the same answer.
	Partial bool `json:"partial,omitempty"`
	// Failure describes the error of a Failed.
	Failure *Failure `json:"failure,omitempty"`
}

// Request describes a request for a list or a watch.
type Request struct {
	Version  string `json:"version,omitempty"`
	Limit    int64  `json:"limit,omitempty"`
	Continue string `json:"continue,omitempty"`
	// Timeout is that of a watch.
	Timeout time.Duration `json:"timeout,omitempty"`
	// SendInitialEvents asks for a streamed list.
	SendInitialEvents bool `json:"sendInitialEvents,omitempty"`
	// ShardSelector narrows the answer, if the server honours it.
	ShardSelector string `json:"shardSelector,omitempty"`
}

// Failure describes an error.
type Failure struct {
	// Error is its text.
	Error string `json:"error"`
	// Phase is that of a source.Error, empty for another error.
	Phase string `json:"phase,omitempty"`
	// Causes name the known errors that it wraps.
	Causes []string `json:"causes,omitempty"`
	// Status is the answer of the server, a metav1.Status, if it is one.
	Status json.RawMessage `json:"status,omitempty"`
}

func (m *More) texts() int {
	if m == nil {
		return 0
	}
	n := len(m.Continue)
	if q := m.Request; q != nil {
		n += len(q.Version) + len(q.Continue) + len(q.ShardSelector)
	}
	if f := m.Failure; f != nil {
		n += len(f.Error) + len(f.Status)
	}
	return n
}

// ErrTorn is wrapped by the cause of a watch that its reader has ended because the watch was silent,
// or contradicted what the reader knew. A replay ends such a watch with this error.
var ErrTorn = errors.New("the watch was ended by its reader")

// Collection describes the collection that a source reads.
type Collection struct {
	// Group, Version, Resource and Kind name the type, as far as they are known.
	Group    string `json:"group,omitempty"`
	Version  string `json:"version,omitempty"`
	Resource string `json:"resource,omitempty"`
	Kind     string `json:"kind,omitempty"`
	// Metadata reports whether objects are read without their other fields.
	Metadata bool `json:"metadata,omitempty"`
	// View are the paths of the fields of a view; nil for whole objects. Its frames have all fields,
	// and other objects those alone.
	View []string `json:"view,omitempty"`
	// Namespace is "" for all.
	Namespace string `json:"namespace,omitempty"`
	// Labels and Fields are selectors.
	Labels string `json:"labels,omitempty"`
	Fields string `json:"fields,omitempty"`
}

// Recording is the content of a ring at a time.
type Recording struct {
	// Reason is the reason for which it was made.
	Reason string
	// Began is when the ring was made, from which records count, and Made when it was copied.
	Began, Made time.Time
	Tracks      []*Track
}

// Track has the records of one writer.
type Track struct {
	// Name is that of the informer.
	Name string
	Collection
	// Base has the objects that were cached when the first record was written, in the order of
	// keys, and BaseVersion is the version up to which the writer's source was read then.
	Base        []Object
	BaseVersion string
	Records     []Record
	// End is when the recording was made, as the records count time: after the last record there
	// was silence until then.
	End time.Duration
}

// Track returns the one track of an informer, or the only one if name is "".
func (r *Recording) Track(name string) (*Track, error) {
	var found []*Track
	var names []string
	for _, t := range r.Tracks {
		names = append(names, t.String())
		if name == "" || t.Name == name || t.String() == name {
			found = append(found, t)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return nil, fmt.Errorf("the recording has %d tracks of %q: choose one of %q",
		len(found), name, names)
}

// String returns the name of the informer, with the namespace if it reads one. The name may have it.
func (t *Track) String() string {
	if t.Namespace == "" || strings.HasSuffix(t.Name, "[in "+t.Namespace+"]") {
		return t.Name
	}
	return t.Name + " in " + t.Namespace
}
