package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/source"
)

// Func brings the cluster closer to the desired state of an object. It returns nil when there is
// nothing left to do at present. An error leads to another call, after a delay that doubles with
// each error in a row; [Terminal] and [RetryAfter] change that. The objects of the request and of
// the caches are shared and read-only.
type Func[T tidings.Object] func(ctx context.Context, r Request[T]) (Result, error)

// Request describes one call for one key.
type Request[T tidings.Object] struct {
	// Key is the key of the object: namespace/name, or the name alone.
	Key string
	// Object is the cached object. It is nil if Gone is set.
	Object T
	// Gone reports whether the object no longer exists. Such a call comes once for each UID that a
	// call was made for, before any call for a later object of the key, and again after an error. Last
	// is then the last state that is known, and nil otherwise.
	Gone bool
	Last T
	// Left is set, together with Gone, if the object still exists and has only left the selection of
	// the informer.
	Left bool
	// Reasons are the reasons of the call: up to eight different ones, in the order in which they
	// came. MoreReasons counts the others.
	Reasons     []Reason
	MoreReasons int
	// Failures is the number of failures of the key in a row.
	Failures int
	// Waited is the time for which the key was queued.
	Waited time.Duration
	// Unshown reports whether a write of an earlier call does not show in the caches, and the server
	// has said that it cannot: others have undone it, or a selector hides it.
	Unshown bool
}

// Namespace returns the namespace of the key, "" if it has none.
func (r Request[T]) Namespace() string {
	namespace, _ := written.SplitKey(r.Key)
	return namespace
}

// Name returns the name of the key.
func (r Request[T]) Name() string {
	_, name := written.SplitKey(r.Key)
	return name
}

// Result is returned by a call without an error. The zero value requests no other call.
type Result struct {
	// RequeueAfter is the delay until another call; 0 requests no other call. It replaces the delay of
	// an earlier result. A change of the object leads to an earlier call as well.
	RequeueAfter time.Duration
}

// Reason is a reason for a call of a key.
type Reason struct {
	Cause Cause `json:"cause"`
	// Informer is the informer whose object changed, and Object the key of that object. They are empty
	// if no change was the cause.
	Informer string `json:"informer,omitzero"`
	Object   string `json:"object,omitzero"`
	// Manager is the field manager of the object's last write, if its managed fields show it.
	Manager string `json:"manager,omitzero"`
	// Own reports whether the change was a write of this controller.
	Own bool `json:"own,omitzero"`
	// Count is the number of times that the reason was given since the last call.
	Count int `json:"count"`
}

// String returns the reason in the form of log lines: `Updated pods.v1 a/b by kubelet`.
func (r Reason) String() string {
	var b strings.Builder
	b.WriteString(r.Cause.String())
	if r.Informer != "" {
		fmt.Fprintf(&b, " %s %s", r.Informer, r.Object)
	}
	switch {
	case r.Own:
		b.WriteString(" by this controller")
	case r.Manager != "":
		b.WriteString(" by " + r.Manager)
	}
	if r.Count > 1 {
		fmt.Fprintf(&b, " (%d times)", r.Count)
	}
	return b.String()
}

// Cause is the kind of a [Reason].
type Cause uint8

// The causes.
const (
	// Added, Updated and Deleted are changes of an object.
	Added Cause = iota + 1
	Updated
	Deleted
	// Initial is an object of the first list.
	Initial
	// Resync is the end of a period of Options.Resync.
	Resync
	// Requeue was requested by Result.RequeueAfter or Enqueue.
	Requeue
	// Retry follows an error.
	Retry
	// Everything is a change that may concern every object: a secondary that has come, a mapping that
	// failed, or a server that was restored from a backup.
	Everything
	// Moved is the slot of the object, which this process has begun to serve.
	Moved
)

// String returns the name of the cause.
func (c Cause) String() string {
	if int(c) < len(causes) {
		return causes[c]
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// MarshalText returns the name of the cause.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the name of a cause. An unknown name, of a later version, gives 0.
func (c *Cause) UnmarshalText(text []byte) error {
	*c = Cause(max(0, slices.Index(causes[:], string(text))))
	return nil
}

var causes = [...]string{
	"", "Added", "Updated", "Deleted", "Initial", "Resync", "Requeue", "Retry", "Everything",
	"Moved",
}

// terminalError is an error after which the key waits for a change.
type terminalError struct{ error }

func (e terminalError) Unwrap() error { return e.error }

// Terminal marks an error that only a change of an object can mend: the key is not called again
// before such a change. A write of the call itself is one, as the call has not read the state that
// it has written. No change follows the end of an object: a terminal error of a call with Gone is
// its last one. Terminal(nil) is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return terminalError{err}
}

// retryError is an error after which the key is called again when a delay has passed.
type retryError struct {
	error
	after time.Duration
}

func (e retryError) Unwrap() error { return e.error }

// RetryAfter marks an error after which the key is called again when d has passed, and not before,
// whatever changes. The Retry-After of a server is understood without it: as the least delay, up to
// five minutes. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return retryError{err, d}
}

// isTerminal reports whether the key waits for a change after an error.
func isTerminal(err error) bool {
	_, ok := errors.AsType[terminalError](err)
	return ok
}

// retryOf returns the outcome of an error that is tried again, with the delay that it requests.
func retryOf(err error) queue.Outcome {
	if marked, ok := errors.AsType[retryError](err); ok {
		return queue.Outcome{Result: queue.Retry, After: marked.after}
	}
	least, _ := source.RetryAfter(err)
	return queue.Outcome{Result: queue.Retry, Least: min(least, source.MaxRetryAfter)}
}
