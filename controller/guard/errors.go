package guard

import (
	"errors"
	"fmt"
	"strings"
)

// The reasons for which the guard does not send a write.
var (
	// ErrFenced reports that the term is closed. It also ends a write that was sent before.
	ErrFenced = errors.New("the term is closed")
	// ErrLate reports that the call whose context the write carries has ended.
	ErrLate = errors.New("the call has ended: write before it returns, " +
		"or with a context that is not the call's")
	// ErrShadow reports that the guard refuses all writes, and gives them to Options.Shadow.
	ErrShadow = errors.New("shadow mode sends no writes")
	// ErrPrecondition reports that the write does not name the version or the UID that it is for.
	ErrPrecondition = errors.New("a precondition is required here: set metadata.resourceVersion " +
		"for an update, and Preconditions.UID for a delete")
	// ErrOtherServer reports that the write is for another server than the guard's.
	ErrOtherServer = errors.New("the guard is for another server: make a guard for this one")
)

// ErrUnguarded is the error for a client whose writes do not pass the guard.
var ErrUnguarded = errors.New("its writes do not pass the guard: make clients with " +
	"NewForConfig(guard.Config()), or with NewForConfigAndClient(guard.Config(), guard.Client())")

// Error is the error of a write that was not sent, or that was interrupted at the end of its
// term.
type Error struct {
	// Verb is the verb of RBAC.
	Verb string
	// Resource is the resource, as in deployments.apps/status.
	Resource string
	// Namespace and Name are those of the object. Name is "" for a collection.
	Namespace, Name string
	// Call is the name of the call, "" if it has none.
	Call string
	// Term is the text of the closed term, from its String method; "" without such a method.
	Term string
	// Err is one of the sentinels above.
	Err error
	// Cause is the error of the closed term; nil for other errors.
	Cause error
	// Sent reports whether the write was under way: the server may have applied it.
	Sent bool
}

// Error names the write that was refused, its call, and the reason.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "guard: %s %s", e.Verb, e.Resource)
	if object := strings.Trim(e.Namespace+"/"+e.Name, "/"); object != "" {
		fmt.Fprintf(&b, " %s", object)
	}
	if e.Call != "" {
		fmt.Fprintf(&b, " in the call %q", e.Call)
	}
	if e.Sent {
		b.WriteString(" was interrupted")
	} else {
		b.WriteString(" was not sent")
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Term != "" {
		fmt.Fprintf(&b, ": %s", e.Term)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, " (%v)", e.Cause)
	}
	return b.String()
}

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error { return []error{e.Err, e.Cause} }

func (a *attempt) refusal(reason error) *Error {
	e := &Error{
		Verb: a.verb, Resource: a.resourceText(), Namespace: a.namespace, Name: a.name,
		Call: a.call.name(), Err: reason,
	}
	if reason == ErrFenced {
		e.Cause = a.term.Err()
		if named, ok := a.term.(fmt.Stringer); ok {
			e.Term = named.String()
		}
	}
	return e
}
