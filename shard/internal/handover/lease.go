package handover

import "time"

// Sight is a member's Lease as another member has seen it last.
type Sight struct {
	// Exists reports that the server has the Lease, and Held that it names its member as the
	// holder.
	Exists, Held bool
	// Ended reports that the member makes no more calls and writes: its Lease names no holder, or a
	// read after its duration has found none.
	Ended bool
	// Since is the time, by the clock of the member that sees it, at which this state was first
	// seen.
	Since time.Time
	// Length is the duration in the Lease.
	Length time.Duration
	Record Record
}

// Standing returns the standing of the member. A Lease that is gone counts as held, as its member
// may not know yet.
func (s Sight) Standing(now time.Time) Standing {
	switch {
	case s.Ended:
		return Ended
	case !s.Exists || s.Expired(now) >= 0:
		return Held
	}
	return Live
}

// Expired returns the time for which the Lease has not changed, beyond its duration.
func (s Sight) Expired(now time.Time) time.Duration { return now.Sub(s.Since) - s.Length }

// MayEnd reports whether another member may end the member: by a swap of its Lease at the seen
// version, or by a read that finds none. turn is the result of Turn: members act one after the
// other.
func (s Sight) MayEnd(now time.Time, turn time.Duration) bool {
	return !s.Ended && s.Expired(now) >= turn
}

// MayDelete reports whether the Lease with a name may be deleted: a member of this group has made
// it, has ended for as long as the Lease lasts, and the map does not name it.
func (s Sight) MayDelete(name string, now time.Time, isNamed bool) bool {
	return s.Exists && !s.Held && !isNamed && s.Record.Name == name && s.Expired(now) >= 0
}

// Turn is the time for which a member waits so that others act first on what all of them see. rank
// is the number of live members before it. The longest wait is a fifteenth of the duration, a
// second of 15 s: it is part of the time until a crash is noticed.
func Turn(rank int, duration time.Duration) time.Duration {
	return min(time.Duration(rank)*duration/60, duration/15)
}

// The times of a new map are those of S1.
const (
	// joinsFor is the time without a join before a new map is made: members that start together
	// share it.
	joinsFor = 5 * time.Second
	// mostJoinsFor bounds that wait where members join all the time.
	mostJoinsFor = 30 * time.Second
)

// MayMake reports whether a map may be made, first and last being the times at which live members
// were first seen.
func MayMake(now, first, last time.Time) bool {
	return now.Sub(last) >= joinsFor || now.Sub(first) >= mostJoinsFor
}
