package election

import (
	"errors"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// Errors of a closed term. [Term] has an Err that wraps one of them.
var (
	// ErrLost is wrapped by the errors of each term that its holder did not end.
	ErrLost = lease.ErrLost
	// ErrDeadline: no renewal succeeded before the fence.
	ErrDeadline = lease.ErrDeadline
	// ErrDeleted: the Lease was deleted.
	ErrDeleted = lease.ErrDeleted
	// ErrTaken: another holder is written in the Lease; the error names it.
	ErrTaken = lease.ErrTaken
	// ErrReleased: lead returned, and the Lease is released.
	ErrReleased = lease.ErrReleased
)

// ErrStragglers reports that calls of a term still run. [Elector.Run] returns it when lead did
// not return within its grace. If lead returns it, the Lease is not released.
var ErrStragglers = errors.New("calls of the term still run")
