package fanout

import "fmt"

// defaultLimit is the backlog, in notifications, that a handler without a limit of its own may have
// before its policy is applied: on top of one for each live key, but for Block.
const defaultLimit = 10_000

// Policy decides about the backlog of a handler that is slower than the changes come. The zero
// value is ConflateUpdates.
type Policy uint8

// The policies.
const (
	// ConflateUpdates folds, in a backlog beyond its limit, consecutive updates of one incarnation
	// of an object into one: Old is the state that the handler saw last, New the newest state.
	// Adds, deletes and updates that change the UID all stay. Objects that came and went unseen
	// meanwhile add up, see Stats.Unseen.
	ConflateUpdates Policy = iota
	// ConflateState keeps, in a backlog beyond its limit, at most one notification for each key:
	// the difference between the state that the handler saw last and the present one. Seen and
	// there: an update, which may differ in UID. Seen and gone: a delete; if another incarnation
	// was the last one, a tombstone with the state that the handler saw last. New: an add. Objects
	// that came and went unseen are left out, see Stats.LeftOut.
	ConflateState
	// Block makes Log.AwaitRoom wait while the handler is at its limit, so that a publisher that
	// asks stands still with it. One stuck handler stops the cache and every other handler: it is
	// for programs whose handlers are known to return.
	Block
	// Unbounded keeps everything. A handler that is stuck grows the heap until the process is
	// killed.
	Unbounded
)

var policies = [...]string{"ConflateUpdates", "ConflateState", "Block", "Unbounded"}

// String returns the name of the policy.
func (p Policy) String() string {
	if int(p) < len(policies) {
		return policies[p]
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// conflates reports whether the policy folds a backlog beyond its limit.
func (p Policy) conflates() bool { return p == ConflateUpdates || p == ConflateState }
