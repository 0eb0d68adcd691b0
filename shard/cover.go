package shard

import (
	"slices"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

const (
	// lists is the time that caches may take after a crash was noticed.
	lists = 30 * time.Second
	// mostLate is the time after which late entries are an alarm.
	mostLate = 10 * time.Minute
	// unlisted is the number of the controllers without an entry in cover.since.
	unlisted = slot.Entries
)

// cover has the times since which entries are not covered, or late; zero: they are not.
type cover struct {
	uncovered, late [slot.Entries + 1]time.Time
	alarm, warning  time.Time // when these were last logged
	isFull          bool      // by the last look, all entries are covered, and none is late
}

// covers are the entries of a map by their cover. Covered ones are in none.
type covers struct {
	nobody, notReady, late Set
	unlisted               []string // controllers without an entry
	all                    int      // entries, and controllers without one
}

func (c covers) uncovered() Set { return c.nobody.Union(c.notReady) }

func (c covers) share() float64 {
	if c.all == 0 {
		return 0
	}
	return 1 - float64(c.uncovered().Len()+len(c.unlisted))/float64(c.all)
}

// counts returns the number of entries by cover. Controllers without an entry have nobody.
func (c covers) counts() map[Cover]int {
	nobody := c.nobody.Len() + len(c.unlisted)
	return map[Cover]int{
		Covered: c.all - nobody - c.notReady.Len() - c.late.Len(),
		Late:    c.late.Len(), NotReady: c.notReady.Len(), Nobody: nobody,
	}
}

// of returns the cover of an entry.
func (c covers) of(i int) Cover {
	switch {
	case c.nobody.Has(i):
		return Nobody
	case c.notReady.Has(i):
		return NotReady
	case c.late.Has(i):
		return Late
	}
	return Covered
}

// tolerated is the time for which an entry may be uncovered: a crash is noticed, and caches are
// filled, in it.
func (g *Group) tolerated() time.Duration { return g.o.Duration + lists }

// coversLocked returns the entries by their cover. Without a map nobody has the slots.
func (g *Group) coversLocked(now time.Time) (c covers) {
	if g.view.contents.Entries == nil {
		return covers{nobody: slot.All(), all: slot.Count}
	}
	for i, e := range g.view.contents.Entries {
		if isVacant(g.view.contents, i) {
			continue
		}
		c.all++
		s := g.view.members[e.Owner]
		if e.Owner == "" || s == nil || s.Standing(now) != handover.Live {
			c.nobody.Add(i)
			continue
		}
		if _, isReady := s.Record.Weights[i]; !isReady {
			c.notReady.Add(i)
		} else if slices.Contains(s.Record.Late, i) {
			c.late.Add(i)
		}
	}
	for _, name := range g.offeredLocked(now) {
		if !slices.Contains(g.view.contents.Controllers, name) {
			c.unlisted = append(c.unlisted, name)
			c.all++
		}
	}
	return c
}

// offeredLocked returns the controllers that live members can lead.
func (g *Group) offeredLocked(now time.Time) []string {
	records := make(map[handover.ID]*handover.Record, len(g.view.members))
	for id, s := range g.view.members {
		records[id] = &s.Record
	}
	return offeredBy(g.peersLocked(now), records)
}

// noteCoverLocked records since when entries are not covered or late, and logs, once a minute,
// those that are so for too long.
func (g *Group) noteCoverLocked(now time.Time) covers {
	c := g.coversLocked(now)
	uncovered := c.uncovered()
	for i := range slot.Entries {
		note(&g.cover.uncovered[i], uncovered.Has(i), now)
		note(&g.cover.late[i], c.late.Has(i), now)
	}
	g.cover.isFull = uncovered.IsEmpty() && c.late.IsEmpty() && len(c.unlisted) == 0
	note(&g.cover.uncovered[unlisted], len(c.unlisted) > 0, now)
	nobody := g.longerLocked(c.nobody, &g.cover.uncovered, g.tolerated(), now)
	if nobody != "" || g.isLongUnlisted(now) {
		g.alertLocked(now, "slots or controllers are owned by nobody", nobody, c.unlisted)
	}
	if notReady := g.longerLocked(c.notReady, &g.cover.uncovered, g.tolerated(), now); notReady != "" {
		g.alertLocked(now, "slots or controllers are not ready at their owners", notReady, nil)
	}
	late := g.longerLocked(c.late, &g.cover.late, mostLate, now)
	if late != "" && now.Sub(g.cover.warning) >= time.Minute {
		g.cover.warning = now
		g.log.Warn("keys of slots or controllers wait for long",
			"slots", late, "for", longest(&g.cover.late, now))
	}
	return c
}

func note(since *time.Time, holds bool, now time.Time) {
	*since = handover.Since(*since, holds, now)
}

func (g *Group) isLongUnlisted(now time.Time) bool {
	since := g.cover.uncovered[unlisted]
	return !since.IsZero() && now.Sub(since) > g.tolerated()
}

// longerLocked returns the names of the entries for which something holds for longer than a time.
func (g *Group) longerLocked(
	some Set, since *[slot.Entries + 1]time.Time, than time.Duration, now time.Time,
) string {
	var long Set
	for i := range some.Slots() {
		if now.Sub(since[i]) > than {
			long.Add(i)
		}
	}
	return namesOf(g.view.contents, long)
}

// alertLocked logs that entries are not covered.
func (g *Group) alertLocked(now time.Time, text, names string, unlisted []string) {
	if now.Sub(g.cover.alarm) < time.Minute {
		return
	}
	g.cover.alarm = now
	g.log.Error(text, "slots", names, "unlisted", unlisted, "for", longest(&g.cover.uncovered, now))
}

// longest returns the longest time for which something holds for an entry.
func longest(since *[slot.Entries + 1]time.Time, now time.Time) (longest time.Duration) {
	for _, at := range since {
		if !at.IsZero() {
			longest = max(longest, now.Sub(at))
		}
	}
	return longest
}
