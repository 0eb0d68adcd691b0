package delta

import "errors"

// Errors of any call.
var (
	// ErrClosed is returned by every call after Close, and by the calls that wait while the queue is closed.
	ErrClosed = errors.New("delta: the queue is closed")
)

// Errors of producers: nothing of the call was taken.
var (
	// ErrUnknownScope is returned for a scope that the queue does not have, or has no longer.
	ErrUnknownScope = errors.New("delta: unknown scope")
	// ErrForeignKey is returned for a key that does not begin with the prefix of its scope.
	ErrForeignKey = errors.New("delta: key outside its scope")
	// ErrOlder is returned for a Replace whose version is before the one its scope has reached.
	ErrOlder = errors.New("delta: the list is older than the state already reached")
)

// Errors of adding a scope.
var (
	// ErrOverlap is returned for a scope that is there already, or is a prefix of another one, or has another one as a prefix.
	ErrOverlap = errors.New("delta: scopes overlap")
)

// Errors of the consumer.
var (
	// ErrBusy is returned by Pop while another Pop waits or processes.
	ErrBusy = errors.New("delta: another Pop is running; a queue has one consumer")
)
