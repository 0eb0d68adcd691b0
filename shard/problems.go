package shard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

const (
	// hangs is the time for which a member may renew its Lease without having seen the map.
	hangs = time.Minute
	// movesFor is the time after the last write of the map for which entries may have a next owner:
	// a list may take minutes.
	movesFor = 10 * time.Minute
	// stalled is the time for which members of two generations may live without another member that
	// joins. It is the default of progressDeadlineSeconds, after which a Deployment reports that
	// its rollout has stalled.
	stalled = 10 * time.Minute
)

// problemsLocked returns sentences about problems of the group, and about states that are normal
// for a while.
func (g *Group) problemsLocked() (problems, remarks []string) {
	problems = []string{}
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	now := g.now()
	peers := g.peersLocked(now)
	live := liveOf(peers)
	if len(live) == 0 {
		add("No member lives.")
	}
	for _, id := range slices.Sorted(maps.Keys(g.view.members)) {
		s := g.view.members[id]
		if over := s.Expired(now); !s.Ended && s.lease != nil && over >= 0 {
			add("The Lease of %s ran out %v ago, and no member has ended it.", id, over.Round(time.Second))
		}
	}
	for _, id := range live {
		s := g.view.members[id]
		switch {
		case g.view.table != nil && !peers[id].Joined &&
			time.Since(s.lease.CreationTimestamp.Time) >= hangs:
			add("The member %s renews its Lease, and has not joined: it cannot list or read the map.", id)
		case peers[id].Refused:
			add("The server refuses the writes of the map by %s.", id)
		case peers[id].State == handover.Gives:
			add("The member %s gives away what it owns: it cannot do its work.", id)
		}
		if len(s.Record.Lacks) > 0 {
			add("The member %s cannot serve %s.", id, strings.Join(s.Record.Lacks, ", "))
		}
	}
	if err := g.mapErrorLocked(); err != nil {
		add("%s. No member acts on it.", capital(err.Error()))
	} else if g.view.table == nil {
		add("There is no map, so that no slot has an owner. Members make one once they have joined, " +
			"and all Leases that name an old one are released, or have run out.")
	} else {
		c := g.coversLocked(now)
		problems = append(problems, g.coverProblemsLocked(c, now)...)
		if len(c.unlisted) > 0 && isFull(g.view.contents) {
			add("The map is full, so that nobody leads %s. Divide the controllers among two groups.",
				strings.Join(c.unlisted, ", "))
		}
	}
	if generations, age := g.generationsLocked(live); len(generations) > 1 {
		text := fmt.Sprintf("Members of %d generations live, the newest member for %v, and what members "+
			"leave goes to other generations than theirs: %s.",
			len(generations), age.Round(time.Second), strings.Join(generations, "; "))
		if age < stalled {
			remarks = append(remarks, text)
		} else {
			problems = append(problems, text)
		}
	}
	if written := lastWrite(g.view.table); !written.IsZero() && time.Since(written) >= movesFor {
		for _, text := range texts(g.view.contents, g.movingLocked(), "moves", "move") {
			add("%s to another member for %v or longer.", text, time.Since(written).Round(time.Second))
		}
	}
	return problems, remarks
}

// capital returns a text with a capital at its beginning.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// isFull reports whether the map has no room for another controller.
func isFull(m handover.Map) bool {
	return len(m.Controllers) == slot.MaxControllers && !slices.Contains(m.Controllers, "")
}

// maxSlotsText bounds the bytes of the numbers of slots in a sentence.
const maxSlotsText = 60

// texts returns a sentence for the slots of a set, and one for each controller of it, with the
// verb in singular or plural.
func texts(m handover.Map, entries Set, one, several string) (texts []string) {
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
		texts = append(texts, fmt.Sprintf("The controller %s %s", nameOf(m, n), one))
	}
	return texts
}

// coverProblemsLocked returns sentences with the reasons why entries are not covered or late, by
// owner.
func (g *Group) coverProblemsLocked(c covers, now time.Time) (problems []string) {
	byOwner := func(some Set) map[string]Set {
		all := map[string]Set{}
		for i := range some.Slots() {
			e := g.view.contents.Entries[i]
			key := string(e.Owner)
			if reason := g.reasonLocked(i, e); reason != "" {
				key += "\x00" + reason
			}
			all[key] = all[key].Union(slot.Of(i))
		}
		return all
	}
	for _, kind := range []struct {
		entries      Set
		one, several string
		why          func(owner handover.ID, reason string) string
	}{
		{c.nobody, "has nobody", "have nobody", func(owner handover.ID, _ string) string {
			return g.whyNobodyLocked(owner, now)
		}},
		{c.notReady, "is not ready", "are not ready", func(owner handover.ID, reason string) string {
			if reason == "" {
				reason = "its caches are being filled"
			}
			return fmt.Sprintf(" at %s: %s.", owner, reason)
		}},
		{c.late, "is late", "are late", func(owner handover.ID, _ string) string {
			return fmt.Sprintf(" at %s: a key has waited for more than a minute. "+
				"Nothing moves because of it.", owner)
		}},
	} {
		owned := byOwner(kind.entries)
		for _, key := range slices.Sorted(maps.Keys(owned)) {
			owner, reason, _ := strings.Cut(key, "\x00")
			why := kind.why(handover.ID(owner), reason)
			for _, text := range texts(g.view.contents, owned[key], kind.one, kind.several) {
				problems = append(problems, text+why)
			}
		}
	}
	return problems
}

// whyNobodyLocked returns the reason why entries of an owner have nobody.
func (g *Group) whyNobodyLocked(owner handover.ID, now time.Time) string {
	s := g.view.members[owner]
	switch {
	case owner == "":
		return ": there is no owner."
	case s == nil || s.lease == nil:
		return fmt.Sprintf(": the Lease of the owner %s is gone.", owner)
	case s.Ended:
		return fmt.Sprintf(" for %v: the owner %s has ended.", now.Sub(s.Since).Round(time.Second), owner)
	default:
		return fmt.Sprintf(" for %v: the Lease of the owner %s has run out.",
			s.Expired(now).Round(time.Second), owner)
	}
}

// generationsLocked returns the generations, each with its members, and the time since the newest
// member joined.
func (g *Group) generationsLocked(live []handover.ID) (texts []string, age time.Duration) {
	members := map[string][]string{}
	var newest time.Time
	for _, id := range live {
		s := g.view.members[id]
		members[s.Record.Generation] = append(members[s.Record.Generation], string(id))
		if joined := s.lease.CreationTimestamp.Time; joined.After(newest) {
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
func (g *Group) movingLocked() (moving Set) {
	for i, e := range g.view.contents.Entries {
		if e.Next != "" {
			moving.Add(i)
		}
	}
	return moving
}

// lastWrite returns the time of the last write of a Lease by the clock of the server, zero if that
// is not known.
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
