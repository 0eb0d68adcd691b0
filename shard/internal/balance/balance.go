package balance

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// The limits are those of S1.
const (
	// tolerance is the part of the share by which the weight of a member may differ from it.
	tolerance = 0.2
	// least is the part of the share by which a move has to improve the balance, and by which
	// members may differ from the share once a rebalancing has ended.
	least = 0.1
	// poor is the part of the share below which a member that takes leads to a rebalancing.
	poor = 0.5
	// cold is the part of the weight without an owner above which a start is cold.
	cold = 0.75
)

// Member is a row of the table: a member that has not ended.
type Member struct {
	ID handover.ID
	handover.Peer
	// Generation names the version of the program.
	Generation string
	// Lacks is the number of its controllers that it cannot serve. Leave it 0 for the plan of
	// controllers.
	Lacks int
	// Cannot has the entries that it cannot own: controllers that it does not have, or that it
	// lacks.
	Cannot slot.Set
}

// Table is the input of a plan. Slots and controllers have plans of their own.
type Table struct {
	// First is the number of the first entry. The weights of entries are the newest ones that are
	// known.
	First   int
	Entries []handover.Entry
	Members []Member
}

// Plan has the moves to begin now. A member writes those that are its own, see handover.View.
type Plan struct {
	Moves []handover.Move
	// Share is the weight that a member should have, and Mixed reports that two generations live.
	Share float64
	Mixed bool
	// Until is the time until which the plan holds, as long as the table stays as it is.
	Until time.Time
}

// member is a row with the entries that it owns or is to own.
type member struct {
	Member
	memory
	weight float64
	has    float64 // the weight that it owns, on its way to others or not
	owned  []int   // those that may be moved
	takes  bool
	waits  bool // it is too new to be an heir
	joins  bool // it is a receiver because it has joined
}

func (m *member) can(number int) bool { return !m.Cannot.Has(number) }

// stays reports whether the member keeps what it owns.
func (m *member) stays() bool {
	return m.Standing != handover.Ended && m.State != handover.Leaving && m.State != handover.Gives
}

// board is the form of a table in which moves are chosen.
type board struct {
	Table
	weights []float64
	total   float64
	dead    float64 // the weight without a live owner
	share   float64
	members []*member // by identity
	byID    map[handover.ID]*member
	limited bool      // members differ in what they can own
	owners  []*member // by entry; nil without one that has not ended
	holders []*member // by entry: the member that it counts for
	plan    Plan
}

func newBoard(t Table) *board {
	b := &board{
		Table: t, byID: make(map[handover.ID]*member, len(t.Members)),
		owners: make([]*member, len(t.Entries)), holders: make([]*member, len(t.Entries)),
	}
	rows := make([]member, len(t.Members))
	for i, row := range t.Members {
		rows[i].Member = row
		b.members, b.byID[row.ID] = append(b.members, &rows[i]), &rows[i]
		b.limited = b.limited || !row.Cannot.IsEmpty()
	}
	slices.SortFunc(b.members, func(x, y *member) int { return cmp.Compare(x.ID, y.ID) })
	b.chooseTakers()
	b.weigh()
	for i := range t.Entries {
		e := &t.Entries[i]
		b.find(i)
		if owner := b.owners[i]; owner != nil {
			owner.has += b.weights[i]
		}
		if m := b.holders[i]; m != nil {
			m.weight += b.weights[i]
			if e.Next == "" && m.stays() {
				m.owned = append(m.owned, i)
			}
		} else {
			b.dead += b.weights[i]
		}
	}
	b.share = b.findShare()
	b.plan.Share = b.share
	return b
}

// chooseTakers compares the members: those take that lack the fewest controllers. That the server
// refuses a member's writes counts only while there is another one.
func (b *board) chooseTakers() {
	refused := !slices.ContainsFunc(b.members, func(m *member) bool {
		return m.stays() && m.isLive() && !m.Refused
	})
	fewest := -1
	for _, m := range b.members {
		m.takes = m.isLive() && m.Joined && m.State == handover.Takes && (!m.Refused || refused)
		if m.takes && (fewest < 0 || m.Lacks < fewest) {
			fewest = m.Lacks
		}
	}
	for _, m := range b.members {
		m.takes = m.takes && m.Lacks == fewest
	}
}

func (m *member) isLive() bool { return m.Standing == handover.Live }

// weigh sets the weights. An unknown one is the mean of the known, or 1.
func (b *board) weigh() {
	known := 0
	for _, e := range b.Entries {
		if e.Weight > 0 {
			known++
			b.total += float64(e.Weight)
		}
	}
	unknown := 1.0
	if known > 0 {
		unknown = b.total / float64(known)
	}
	b.total += unknown * float64(len(b.Entries)-known)
	b.weights = make([]float64, len(b.Entries))
	for i, e := range b.Entries {
		if b.weights[i] = float64(e.Weight); e.Weight == 0 {
			b.weights[i] = unknown
		}
	}
}

// find sets the owner of an entry, and the member that it counts for: its next owner, if that
// takes, or its owner.
func (b *board) find(i int) {
	e := &b.Entries[i]
	if m := b.byID[e.Owner]; m != nil && m.Standing != handover.Ended {
		b.owners[i], b.holders[i] = m, m
	}
	if m := b.byID[e.Next]; m != nil && m.Inherits() {
		b.holders[i] = m
	}
}

// findShare returns the mean weight of the members that stay, without the entries that are heavier
// than it, each of which takes one member out.
func (b *board) findShare() float64 {
	n := 0
	for _, m := range b.members {
		if m.takes || m.stays() && m.weight > 0 {
			n++
		}
	}
	rest := b.total
	if n == 0 {
		return rest
	}
	// At most n entries are heavier than the mean.
	for _, w := range slices.Backward(slices.Sorted(slices.Values(b.weights))) {
		if n == 1 || w <= rest/float64(n) {
			break
		}
		rest, n = rest-w, n-1
	}
	return rest / float64(n)
}

// begin adds a move to the plan.
func (b *board) begin(i int, to *member) {
	if from := b.holders[i]; from != nil {
		from.weight -= b.weights[i]
	}
	to.weight += b.weights[i]
	b.holders[i] = to
	b.plan.Moves = append(b.plan.Moves, handover.Move{Entry: b.First + i, To: to.ID})
}

// lightest returns the lightest of the members that can own an entry and that a function accepts,
// or nil.
func (b *board) lightest(i int, accepts func(*member) bool) (found *member) {
	for _, m := range b.members {
		if (found == nil || m.weight < found.weight) && m.can(b.First+i) && accepts(m) {
			found = m
		}
	}
	return found
}

// heirOf returns the next owner of an entry whose owner leaves, gives or has ended; nil if nobody
// can be it. While two generations live, which isMixed reports, other generations than avoid come
// first, up to their share.
func (b *board) heirOf(i int, avoid string, isMixed bool) (heir *member) {
	for _, accepts := range []func(*member) bool{
		func(m *member) bool {
			return !m.waits && (!isMixed || m.Generation != avoid && m.weight < b.share)
		},
		func(m *member) bool { return !m.waits && m.Generation == avoid },
		func(m *member) bool { return !m.waits },
		func(*member) bool { return true },
	} {
		heir = b.lightest(i, func(m *member) bool { return m.takes && accepts(m) })
		if heir != nil {
			break
		}
	}
	return heir
}

// byWeight orders entries, the heaviest first.
func (b *board) byWeight(x, y int) int { return cmp.Compare(b.weights[y], b.weights[x]) }

// heaviestFirst returns the entries for which a function is true.
func (b *board) heaviestFirst(is func(int) bool) (entries []int) {
	for i := range b.Entries {
		if is(i) {
			entries = append(entries, i)
		}
	}
	slices.SortStableFunc(entries, b.byWeight)
	return entries
}

// hasNotSeen reports whether a member is about to join.
func (m *member) hasNotSeen() bool { return m.isLive() && !m.Joined && m.State != handover.Leaving }

// inherit gives away the entries without a live owner. A cold start limits what a member gets, and
// waits for a moment until all have seen the map: those that have would get up to the limit, and
// the last one the rest. A Lease whose member does not see it by then may be that of a process that
// did not get the answer.
func (b *board) inherit(s State, now time.Time) {
	isCold, isNew := now.Sub(s.cold) < coldFor, now.Sub(s.cold) < seesFor
	orphans := b.heaviestFirst(func(i int) bool { return b.holders[i] == nil })
	if len(orphans) == 0 || isNew && slices.ContainsFunc(b.members, (*member).hasNotSeen) {
		return
	}
	joined := 0
	for _, m := range b.members {
		if m.isLive() && m.State != handover.Leaving && m.Joined {
			joined++
		}
	}
	for _, i := range orphans {
		heir := b.heirOf(i, s.leaver, b.plan.Mixed && s.hasLeaver)
		if heir == nil { // no member that takes can own it
			heir = b.lightest(i, func(m *member) bool {
				is := m.State == handover.Declines || m.State == handover.Gives
				return is && m.isLive() && m.Joined && !m.Refused
			})
		}
		if heir == nil || isCold && heir.weight >= b.total/float64(joined) {
			continue
		}
		b.begin(i, heir)
		heir.received = now
		s.members[heir.ID] = heir.memory
	}
}

// giveUp gives away the entries of members that leave or give.
func (b *board) giveUp(s State) {
	for _, i := range b.heaviestFirst(func(i int) bool {
		owner := b.owners[i]
		return owner != nil && !owner.stays() && b.Entries[i].Next == ""
	}) {
		owner := b.owners[i]
		avoid, isMixed := s.leaver, b.plan.Mixed && s.hasLeaver
		if owner.State == handover.Leaving {
			avoid, isMixed = owner.Generation, b.plan.Mixed
		}
		if heir := b.heirOf(i, avoid, isMixed); heir != nil {
			b.begin(i, heir)
		}
	}
}

// level moves entries from givers to receivers, which no giver is, until no move helps.
func (b *board) level(gives, receives func(*member) bool) {
	var givers, receivers []*member
	for _, m := range b.members {
		switch {
		case m.takes && receives(m):
			receivers = append(receivers, m)
		case m.stays() && len(m.owned) > 0 && gives(m):
			givers = append(givers, m)
			slices.SortFunc(m.owned, func(x, y int) int {
				return cmp.Or(b.byWeight(x, y), cmp.Compare(b.Entries[x].Epoch, b.Entries[y].Epoch))
			})
		}
	}
	slices.SortFunc(givers, byWeight)
	slices.SortFunc(receivers, byWeight)
	for len(givers) > 0 {
		last := len(givers) - 1
		from := givers[last]
		givers = givers[:last]
		if to := b.levelOne(from, receivers); to >= 0 {
			m := receivers[to]
			receivers = insert(slices.Delete(receivers, to, to+1), m)
			givers = insert(givers, from)
		}
	}
}

func byWeight(x, y *member) int {
	return cmp.Or(cmp.Compare(x.weight, y.weight), cmp.Compare(x.ID, y.ID))
}

// insert inserts a member into members in the order of byWeight.
func insert(members []*member, m *member) []*member {
	at, _ := slices.BinarySearchFunc(members, m, byWeight)
	return slices.Insert(members, at, m)
}

// levelOne moves one entry of a giver. It returns the index of the receiver, -1 if no move helps.
func (b *board) levelOne(from *member, receivers []*member) int {
	for n, to := range receivers {
		if at := b.best(from, to); at >= 0 {
			b.begin(from.owned[at], to)
			from.owned = slices.Delete(from.owned, at, at+1)
			return n
		}
		if !b.limited {
			break // a heavier receiver has no use for them either
		}
	}
	return -1
}

// best returns the index in from.owned of the entry whose move brings the two members closest
// together, -1 if no move helps.
func (b *board) best(from, to *member) int {
	found, most := -1, from.weight-least*b.share
	if from.weight <= b.share*(1+least) && to.weight >= b.share*(1-least) || to.weight >= b.share {
		return -1
	}
	for at, i := range from.owned {
		w := b.weights[i]
		if to.weight+w >= most || !to.can(b.First+i) {
			continue
		}
		if found >= 0 {
			other := b.weights[from.owned[found]]
			if max(from.weight-w, to.weight+w) >= max(from.weight-other, to.weight+other) {
				continue
			}
		}
		found = at
	}
	return found
}

// isPoor reports whether a member should get entries because it has joined.
func (b *board) isPoor(m *member) bool { return m.takes && m.weight < poor*b.share }
