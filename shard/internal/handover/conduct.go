package handover

import (
	"errors"
	"time"
)

// State is the state that a member reports in its Lease.
type State string

const (
	// Starting members are to take entries once their controllers run.
	Starting State = "starting"
	// Takes: entries may be given to the member.
	Takes State = "takes"
	// Declines: the caches of entries that it was to own could not be filled. It keeps what it
	// owns.
	Declines State = "declines"
	// Gives: the member cannot do its work, and wants to be rid of what it owns.
	Gives State = "gives"
	// Leaving members end once they own nothing.
	Leaving State = "leaving"
)

// The times of a member are those of S1 and S2.
const (
	// startsFor bounds the state Starting. The member lacks the controllers that have not started
	// by then: somebody always takes. It is the time without a page after which a list counts as
	// hung.
	startsFor = time.Minute
	// lacksFor is the time for which a member lacks more than another one, or cannot fill an entry
	// that it owns, before it gives.
	lacksFor = 2 * time.Minute
	// ableFor is the time for which a member has to be able to do its work before it takes again.
	// It doubles, up to mostAbleFor, with each time within countsFor.
	ableFor, mostAbleFor, countsFor = time.Minute, 10 * time.Minute, time.Hour
	// declinesFor is the time for which an heir declines. It doubles up to mostDeclines with each
	// list in a row that fails.
	declinesFor, mostDeclines = time.Minute, 10 * time.Minute
	// refusedFor is the time for which writes of the map are refused before the member says so.
	refusedFor = 30 * time.Second
	// firstProbe is the time after a refused write before the next one. It doubles up to mostProbe.
	firstProbe, mostProbe = time.Second, 30 * time.Second
)

// Facts are the observations that a Conduct needs.
type Facts struct {
	// Leaving reports that an orderly end has begun.
	Leaving bool
	// Started reports that all controllers run.
	Started bool
	// Lacks is the number of its controllers that the member cannot serve, and Least the fewest
	// that another member lacks that takes, declines or gives; -1 without such a member.
	Lacks, Least int
	// Unfilled reports that the caches of an entry that it owns cannot be filled.
	Unfilled bool
	// Hung reports that no call of a controller has ended for ten minutes while keys wait.
	Hung bool
	// Failed counts the lists of entries it was to own that have failed, or had no page for a
	// minute, and Filled those that have not.
	Failed, Filled int
}

// Conduct decides which state a member reports. The zero value begins with the first call of Next.
type Conduct struct {
	state    State
	began    time.Time
	unable   time.Time   // since when the member lacks more than another, or cannot fill; or zero
	able     time.Time   // since when a member that gives could do its work; zero: it cannot
	gaves    []time.Time // the times within an hour at which it began to give
	declined int         // the lists in a row that have failed
	until    time.Time   // the end of the state Declines
	last     Facts
}

// State returns the state.
func (c Conduct) State() State { return c.state }

// Next returns the conduct after a look at the facts. Look at least every few seconds.
func (c Conduct) Next(now time.Time, f Facts) Conduct {
	if c.began.IsZero() {
		c.began, c.state = now, Starting
	}
	isUnable := f.Unfilled || f.Least >= 0 && f.Lacks > f.Least
	c.unable = Since(c.unable, isUnable, now)
	c.countLists(now, f)
	isUseless := f.Hung || isUnable && now.Sub(c.unable) >= lacksFor
	switch {
	case f.Leaving || c.state == Leaving:
		c.state = Leaving
	case c.state == Gives:
		c.able = Since(c.able, !isUnable && !f.Hung, now)
		if !c.able.IsZero() && now.Sub(c.able) >= c.mustBeAbleFor() {
			c.state = Takes
		}
	case c.state == Starting:
		if f.Started || now.Sub(c.began) >= startsFor {
			c.state = Takes
		}
	case isUseless:
		c.state, c.able = Gives, time.Time{}
		c.gaves = append(recent(c.gaves, now), now)
	case now.Before(c.until):
		c.state = Declines
	default:
		c.state = Takes
	}
	return c
}

// countLists counts the lists in a row that have failed.
func (c *Conduct) countLists(now time.Time, f Facts) {
	if f.Filled > c.last.Filled {
		c.declined = 0
	}
	if f.Failed > c.last.Failed && !now.Before(c.until) { // those that fail together count once
		c.until = now.Add(min(declinesFor<<min(c.declined, 10), mostDeclines))
		c.declined++
	}
	c.last = f
}

func (c Conduct) mustBeAbleFor() time.Duration {
	return min(ableFor<<min(max(len(c.gaves)-1, 0), 10), mostAbleFor)
}

// recent returns the times within the last hour, in new memory.
func recent(times []time.Time, now time.Time) (kept []time.Time) {
	for _, t := range times {
		if now.Sub(t) < countsFor {
			kept = append(kept, t)
		}
	}
	return kept
}

// Since returns the time since which something holds, zero if it does not.
func Since(before time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// Refusals follow the answers to a member's writes of the map. The zero value has none. A write
// without an answer counts as one: a server that is away lets the Lease run out before the member
// says anything.
type Refusals struct {
	since     time.Time // of the first failed write after which none was accepted
	last      time.Time
	count     int  // since then
	isRefused bool // the server has answered one of them
}

// Accepted returns the refusals after a write that was accepted, also one that changed nothing.
func (r Refusals) Accepted() Refusals { return Refusals{} }

// Refused returns the refusals after a write that was refused. Conflicts are no refusals.
func (r Refusals) Refused(now time.Time) Refusals {
	r = r.Unanswered(now)
	r.isRefused = true
	return r
}

// Unanswered returns the refusals after a write without an answer.
func (r Refusals) Unanswered(now time.Time) Refusals {
	r.since, r.last, r.count = Since(r.since, true, now), now, r.count+1
	return r
}

// Pending reports whether the last write has failed. The member then closes no entry: it could
// not give it away.
func (r Refusals) Pending() bool { return !r.since.IsZero() }

// Says reports whether the member is to say that its writes are refused.
func (r Refusals) Says(now time.Time) bool {
	return !r.since.IsZero() && now.Sub(r.since) >= refusedFor
}

// Probes reports whether the member is to write the map again, unchanged if it has no change.
// Otherwise it would not learn that it is refused no more: it takes nothing and does not plan.
func (r Refusals) Probes(now time.Time) bool {
	return !r.since.IsZero() && now.Sub(r.last) >= min(firstProbe<<min(r.count-1, 10), mostProbe)
}

// ErrRefused is the end of a member whose writes of the map are refused.
var ErrRefused = errors.New("the server refuses this member's writes of the map, or does not " +
	"answer them, and accepts those of others, or this member waits for one: it joins anew")

// End returns ErrRefused if the member has to end: it has drained an entry, for which nobody calls,
// or it owns some and others can write: its last refusal came after a write of another one was
// accepted. A write of its own without an answer may be that one, and does not count here. A member
// that owns nothing stays, and waits: another identity would help nobody.
func (r Refusals) End(now time.Time, owns, hasDrained bool, otherAccepted time.Time) error {
	canOthers := r.isRefused && otherAccepted.After(r.since) && r.last.After(otherAccepted)
	if r.Says(now) && (hasDrained || owns && canOthers) {
		return ErrRefused
	}
	return nil
}

// Stage is a part of an orderly end.
type Stage uint8

const (
	// Handing: entries are handed over, and calls go on.
	Handing Stage = iota
	// Closing: what remains is closed, and the contexts of its calls end. See Member.Final.
	Closing
	// Over: what still runs is named, and the Lease is not released.
	Over
)

// StageOf returns the stage of an orderly end. hasHeirs reports whether a member takes or starts.
func StageOf(began time.Time, grace time.Duration, now time.Time, hasHeirs bool) Stage {
	switch passed := now.Sub(began); {
	case passed >= grace:
		return Over
	case passed >= grace*2/3 || !hasHeirs:
		return Closing
	}
	return Handing
}
