package shard

import (
	"context"
	"errors"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

// Set is a set of entries: slots below [Count], and controllers that are led as a whole from Count
// on.
type Set = slot.Set

// Count is the number of slots of a group.
const Count = slot.Count

// Term is the time of one membership, during which its process may write for the entries that it
// serves. It is a controller.Term of this module: it has the methods Remaining, Done and Err, and
// also Identity and AfterFunc. A closed term stays closed; a process that joins again is another
// member, with another identity and term.
type Term struct{ *lease.Term }

// Owned is an entry that this member owns: its Number, the Epoch, which rises with each change of
// the owner, and the Versions by resource and selection at which the last owner saw its own writes;
// nil if they are not known, as after a crash.
type Owned = slot.Owned

// Calls describes the calls of one entry: whether any were made since Serve, how many run, since
// when the oldest does, and the versions that show their writes. See [Handler].
type Calls = slot.Calls

// Handler does the work of a member: it fills caches and makes calls. A controller.Slots is one.
// All methods but Warm return at once. One goroutine calls them, except Warm and Work, which are
// called by others too.
//
//	Begin ─▶ Warm ─▶ Serve ─▶ Shut ─▶ Drop
//	           │      ▲ ▲       │       ▲
//	           │      │ └───────┘ Unshut│
//	           └──────┴─────────────────┘
//
// The numbers of slots are those of the map. Controllers that are led as a whole have the numbers
// of this handler: Count + n for the nth name of Work.Controllers.
type Handler interface {
	// Begin begins a membership. Its calls and writes are made under the term, which is a *Term.
	// The type of the parameter is also called controller.Term. Nothing is served any more.
	Begin(t guard.Term)
	// Warm fills the caches with the objects of entries, and returns once they are synced. ctx ends
	// when none of these entries is wanted any more. After an error, Warm is called again.
	Warm(ctx context.Context, entries Set) error
	// Serve waits until the caches have reached the versions of entries, and calls each of their
	// keys once. From then on Work.Ready has them.
	Serve(entries []Owned)
	// Shut begins no more calls for entries. Calls that run go on. Unshut begins them again, or
	// goes on to wait for the versions.
	Shut(entries Set)
	Unshut(entries Set)
	// Calls describes the calls of an entry that was served.
	Calls(entry int) Calls
	// Abort ends the contexts of the calls of entries, with a cause.
	Abort(entries Set, cause error)
	// Drop forgets entries that are no longer held. Their objects have moved: they are not deleted.
	// No call for them runs, unless the term has closed.
	Drop(entries Set)
	// Work describes what the handler does. It is called with each renewal, and while entries move.
	Work() Work
	// Ends is closed when this process is to leave the group, also if the context of Join goes on.
	Ends() <-chan struct{}
	// Left is called once the group was left, with the error of Group.Wait.
	Left(err error)
}

// Work is what a [Handler] tells of its work: which entries it calls for, which it has opened and
// why not, and which controllers it cannot serve.
type Work = slot.Work

// Claimer is an optional interface of a [Handler] that serves one group only.
type Claimer interface {
	// Claim is called by Join, which returns its error.
	Claim() error
}

// ErrStragglers is returned if calls still run after the grace. The error that wraps it names the
// entries. Effects of calls outside of Kubernetes cannot be stopped: end the process.
var ErrStragglers = errors.New("calls of the membership still run")

var (
	errLeft       = errors.New("the member has left the group")
	errMapDeleted = errors.New("the map of the group was deleted, replaced or restored")
	errRestored   = errors.New("the versions of the server went back, as after the restoring of a " +
		"backup")
	// errMapRestored is the error of a map that has replaced a later one. Members that have not
	// noticed it yet may call for entries that others own by it.
	errMapRestored = errors.New("the map of the group is older than one that was seen before, as " +
		"after the restoring of a backup: it is deleted, and made anew once all members have ended")
	// errForeign is the error of a Lease of the group's name that is not its map.
	errForeign = errors.New("the lease of the group's name is that of something else, such as an " +
		"election")
	// ErrLeaving is the cause with which the contexts of calls end at two thirds of the grace.
	ErrLeaving = errors.New("the process leaves the group, and nobody could take this over in time")
)
