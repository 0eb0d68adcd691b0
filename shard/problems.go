package shard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// hangs is the time for which the map of a group with hand-overs may stay unchanged. They are
// taken back earlier, unless Options.HandOver is longer than a minute.
const hangs = 2 * defaultHandOver

// stalled is the time for which members of two generations may live without another member that
// joins. It is the default of progressDeadlineSeconds, after which a Deployment reports that its
// rollout has stalled.
const stalled = 10 * time.Minute

// problemsLocked returns sentences about problems of the group, and about states that are normal
// for a while.
func (g *Group) problemsLocked() (problems, remarks []string) {
	problems = []string{}
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	live := g.membersLocked()
	if len(live) == 0 {
		add("No member lives.")
	}
	for _, id := range slices.Sorted(maps.Keys(g.view.members)) {
		s := g.observedLocked(id)
		if over := g.expiredLocked(s); !s.ended && s.lease != nil && over >= 0 {
			add("The Lease of %s ran out %v ago, and no member has ended it.", id, over.Round(time.Second))
		}
	}
	for _, id := range live {
		if s := g.observedLocked(id); g.view.table != nil && !g.isJoinedLocked(s) &&
			time.Since(s.lease.CreationTimestamp.Time) >= hangs {
			add("The member %s renews its Lease, and has not joined: it cannot list or read the map.", id)
		}
	}
	switch {
	case g.view.broken != nil:
		add("%s%s. No member acts on it.", strings.ToUpper(g.view.broken.Error()[:1]),
			g.view.broken.Error()[1:])
	case g.view.table == nil:
		add("There is no map, so that no slot has an owner. Members make one once all Leases that name " +
			"the old one are released, or have run out.")
	default:
		problems = append(problems, g.uncoveredProblemsLocked()...)
		if names := g.unlistedLocked(); len(names) > 0 && g.view.isFull() {
			add("The map is full, so that nobody leads %s. Divide the controllers among two groups.",
				strings.Join(names, ", "))
		}
	}
	if generations, age := g.generationsLocked(live); len(generations) > 1 {
		text := fmt.Sprintf("Members of %d generations live, the newest one for %v, and slots move to its "+
			"generation, if that can serve them: %s.", len(generations), age.Round(time.Second),
			strings.Join(generations, "; "))
		if age < stalled {
			remarks = append(remarks, text)
		} else {
			problems = append(problems, text)
		}
	}
	if written := lastWrite(g.view.table); !written.IsZero() && time.Since(written) >= hangs {
		for _, text := range g.view.texts(g.movingLocked(), "moves", "move") {
			add("%s to another member for %v or longer.", text, time.Since(written).Round(time.Second))
		}
	}
	return problems, remarks
}

// isFull reports whether the map has no room for another controller.
func (c contents) isFull() bool {
	return len(c.controllers) == slot.MaxControllers && !slices.Contains(c.controllers, "")
}

// unlistedLocked returns the controllers that members can lead but that have no entry. There are
// some for a moment after a member has joined, or permanently if the map is full.
func (g *Group) unlistedLocked() []string {
	offered := g.offeredLocked()
	for _, name := range g.view.controllers {
		delete(offered, name)
	}
	return slices.Sorted(maps.Keys(offered))
}

// maxSlotsText bounds the bytes of the numbers of slots in a sentence.
const maxSlotsText = 60

// texts returns a sentence for the slots of a set, and one for each controller of it, with the
// verb in singular or plural.
func (c contents) texts(entries slot.Set, one, several string) (texts []string) {
	slots := slotsOf(entries)
	switch numbers := slots.String(); {
	case slots.IsEmpty():
	case slots.Len() == 1:
		texts = append(texts, fmt.Sprintf("Slot %s %s", numbers, one))
	default:
		if len(numbers) > maxSlotsText {
			numbers = numbers[:strings.LastIndexByte(numbers[:maxSlotsText], ',')+1] + "…"
		}
		texts = append(texts, fmt.Sprintf("%d slots (%s) %s", slots.Len(), numbers, several))
	}
	for n := range entries.Minus(slots).Slots() {
		texts = append(texts, fmt.Sprintf("The controller %s %s", c.name(n), one))
	}
	return texts
}

// uncoveredProblemsLocked returns sentences with the reasons why entries are uncovered, by owner.
func (g *Group) uncoveredProblemsLocked() (problems []string) {
	byOwner := map[protocol.ID]slot.Set{}
	for i := range g.uncoveredLocked().Slots() {
		owner := g.view.entries[i].Owner
		byOwner[owner] = byOwner[owner].Union(slot.Of(i))
	}
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) {
		reason := g.uncoveredReasonLocked(owner)
		for _, text := range g.view.texts(byOwner[owner], "is uncovered", "are uncovered") {
			problems = append(problems, text+reason)
		}
	}
	return problems
}

// uncoveredReasonLocked returns the reason why entries of an owner are uncovered.
func (g *Group) uncoveredReasonLocked(owner protocol.ID) string {
	s := g.observedLocked(owner)
	switch {
	case owner == "":
		return ": there is no owner."
	case s.lease == nil:
		return fmt.Sprintf(": the Lease of the owner %s is gone.", owner)
	case s.ended:
		return fmt.Sprintf(" for %v: the owner %s has ended.", g.clock.Since(s.since).Round(time.Second), owner)
	case g.expiredLocked(s) >= 0:
		return fmt.Sprintf(" for %v: the Lease of the owner %s has run out.",
			g.expiredLocked(s).Round(time.Second), owner)
	default:
		return fmt.Sprintf(": the owner %s reports that not in order.", owner)
	}
}

// generationsLocked returns the generations, each with its members, and the time since the newest
// member joined.
func (g *Group) generationsLocked(live []protocol.ID) (texts []string, age time.Duration) {
	members := map[string][]string{}
	var newest time.Time
	for _, id := range live {
		s := g.observedLocked(id)
		members[s.record.generation] = append(members[s.record.generation], string(id))
		if joined := s.joinedAt(); joined.After(newest) {
			newest = joined
		}
	}
	for _, generation := range slices.Sorted(maps.Keys(members)) {
		texts = append(texts, fmt.Sprintf("%q has %s", generation,
			strings.Join(members[generation], ", ")))
	}
	return texts, max(0, time.Since(newest))
}

// movingLocked returns the entries that have a next owner.
func (g *Group) movingLocked() (moving slot.Set) {
	for i, e := range g.view.entries {
		if e.Next != "" {
			moving.Add(i)
		}
	}
	return moving
}

// lastWrite returns the time of the last write of a Lease by the clock of the server, zero if that is
// not known.
func lastWrite(l *coordinationv1.Lease) (last time.Time) {
	if l == nil {
		return last
	}
	for _, m := range l.ManagedFields {
		if m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}
