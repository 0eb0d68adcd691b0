package shard

import (
	"context"
	"errors"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
)

// Set is a set of slots.
type Set = slot.Set

// Count is the number of slots of a group.
const Count = slot.Count

// Term is the time of one membership, during which its process may write for the slots that it
// serves. It is a controller.Term of this module: it has the methods Remaining, Done and Err, and
// also Identity and AfterFunc. A closed term stays closed; a process that joins again is another
// member, with another identity and term.
type Term struct{ *lease.Term }

// Slot is a slot that this member owns: its Number, the Epoch, which rises with each change of the
// owner, and the Versions by resource and selection at which the last owner saw its own writes; nil
// if they are not known, as after a crash.
type Slot = slot.Owned

// Handler does the work of a member: it fills caches and makes calls. A controller.Slots is one. Its
// methods are called for disjoint sets of slots. Begin, Serve and Drop must not block; Warm and Drain
// may be called at the same time as all others.
//
//	Begin ─▶ Warm ─▶ Serve ─▶ Drain ─▶ Drop
//	           │       ▲        │        ▲
//	           │       └────────┘        │  the hand-over was taken back
//	           └─────────────────────────┘  the slots went elsewhere
type Handler interface {
	// Begin begins a membership. Its calls and writes are made under the term, which is a *Term. The
	// type of the parameter is also called controller.Term.
	Begin(t guard.Term)
	// Warm fills the caches with the objects of slots, and returns once they are synced. ctx ends
	// when none of these slots is wanted any more. After an error, Warm is called again.
	Warm(ctx context.Context, slots Set) error
	// Serve begins to take the keys of slots, and calls each of them once.
	Serve(slots []Slot)
	// Drain takes no more keys of slots. It returns once no call for them runs, and the caches show
	// the writes of such calls. The versions, by resource and selection, are those of the events
	// that showed the writes; nil if they are not known. ctx ends with the term, and when the
	// hand-over is taken back: then Serve may be called again for the slots.
	Drain(ctx context.Context, slots Set) (versions map[string]string, err error)
	// Drop forgets slots that are no longer held. Their objects have moved: they are not deleted.
	Drop(slots Set)
}

// Leader is an optional interface of a [Handler], to lead whole controllers beside the slots, each on
// one member of the group. A manager of the package controller does so for its controllers. Its
// methods may be called at the same time, except Lead, Prepare and Resign of one controller.
type Leader interface {
	// Controllers returns the controllers that this process can lead, by name, and whether each of
	// them is led here and in order. It is called with each renewal. A group has at most 64 names.
	Controllers() map[string]bool
	// Prepare returns once a controller can be led without a delay: once its caches are synced. ctx
	// ends when the controller is no longer wanted here.
	Prepare(ctx context.Context, name string) error
	// Lead begins to lead a controller. The versions, by resource and selection, are those at which
	// the last leader saw its own writes; nil if they are not known.
	Lead(name string, versions map[string]string)
	// Resign ends the leading of a controller, and returns as Drain does. After an error, Lead
	// may be called again.
	Resign(ctx context.Context, name string) (versions map[string]string, err error)
}

// Reporter is an optional interface of a [Handler]. Without it, all slots that Serve was called
// for are in order, and have no load.
type Reporter interface {
	// Report returns the slots that are in order, and the load by slot, in any unit that all
	// members share. A slot is in order if its caches are synced and have reached the versions,
	// and no key has waited for longer than a bound. It is called with each renewal.
	Report() (inOrder Set, loads [Count]float64)
}

// Claimer is an optional interface of a [Handler] that serves one group only.
type Claimer interface {
	// Claim is called by Join, which returns its error.
	Claim() error
}

// ErrStragglers is returned if calls still run after the grace, or if the caches do not show their
// writes. The error that wraps it names the case. Effects of calls outside of Kubernetes cannot be
// stopped: end the process.
var ErrStragglers = errors.New("calls of the membership still run")

var (
	errLeft       = errors.New("the member has left the group")
	errMapDeleted = errors.New("the map of the group was deleted, replaced or restored")
	errNoLeader   = errors.New("the handler of this process leads no controllers, and the map gives it one")
	errRestored   = errors.New("the versions of the server went back, as after the restoring of a backup")
	// errMapRestored is the error of a map that has replaced a later one. Members that have not
	// noticed it yet may call for entries that others own by it.
	errMapRestored = errors.New("the map of the group is older than one that was seen before, as after " +
		"the restoring of a backup: it is deleted, and made anew once all members have ended")
)
