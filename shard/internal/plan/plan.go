package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidings-go/tidings/shard/internal/protocol"
)

const (
	// Patience is the time for which weights have to be uneven before entries move.
	Patience = 2 * time.Minute
	// tolerance is the part of the mean weight by which a member's weight may differ from it.
	tolerance = 0.2
)

// Confidence is the expectation that a member warms and serves an entry.
type Confidence uint8

// The confidences.
const (
	// Sound: no failure of the member is known.
	Sound Confidence = iota
	// OnTrial: it failed a while ago. It gets one entry, to show that it has recovered.
	OnTrial
	// Doubtful: it failed a short while ago. It gets only entries without a live owner, or of leavers,
	// that no other member can own.
	Doubtful
)

// Member is a live member.
type Member struct {
	ID protocol.ID
	// Generation names the version of the program.
	Generation string
	// Joined is the time at which it joined, by the server's clock.
	Joined time.Time
	// Leaving members give all their entries away.
	Leaving bool
}

// Input holds the entries, the live members and the loads that a plan is made of.
type Input struct {
	Entries []protocol.Entry
	Members []Member
	// Loads are the loads of the entries, in any unit. An unknown load counts as the mean of the
	// others.
	Loads map[int]float64
	// Uneven is the time for which [Input.IsUneven] has been true.
	Uneven time.Duration
	// Can reports whether a member can own an entry. Nil means that each member can own each entry.
	Can func(entry int, id protocol.ID) bool
	// Avoid reports whether a move was tried a short while ago, and failed. Nil means that no
	// move is avoided.
	Avoid func(protocol.Move) bool
	// Confidence returns the confidence in a member for an entry. Nil means that all are sound.
	Confidence func(entry int, id protocol.ID) Confidence
	// Unserved reports whether the owner of an entry has not served it for long. Nil means that all
	// entries are served.
	Unserved func(entry int) bool
	// Unproven reports whether a member serves nothing yet. Of the entries that others do not serve, it
	// gets no more than its share. Nil means that all members are proven.
	Unproven func(id protocol.ID) bool
}

// member is a Member with the weight of the entries that it will own.
type member struct {
	Member
	weight float64
	tried  bool // a move to it begins now
}

// board is the form of an input from which moves are chosen.
type board struct {
	Input
	weights []float64
	members []*member // the members that may get entries, by identity
	older   []*member // the members that may get the entries that none of members can own
	all     map[protocol.ID]*member
	share   float64 // the mean weight of members and older
	mixed   bool    // two generations live
	orphans bool    // a member can own an entry that has no live owner
}

func (in Input) board() *board {
	b := &board{Input: in, weights: in.weights(), all: map[protocol.ID]*member{}}
	newest := in.newest()
	for _, m := range in.Members {
		b.mixed = b.mixed || m.Generation != in.Members[0].Generation
		kept := &member{Member: m}
		b.all[m.ID] = kept
		switch {
		case m.Leaving:
		case m.Generation == newest:
			b.members = append(b.members, kept)
		default:
			b.older = append(b.older, kept)
		}
	}
	byID := func(x, y *member) int { return cmp.Compare(x.ID, y.ID) }
	slices.SortFunc(b.members, byID)
	slices.SortFunc(b.older, byID)
	for i, e := range in.Entries {
		owner := b.all[e.Next]
		if owner == nil {
			owner = b.all[e.Owner]
		}
		if owner != nil {
			owner.weight += b.weights[i]
		} else {
			b.orphans = b.orphans || b.lightest(i) != nil
		}
	}
	b.share = meanOf(slices.Concat(b.members, b.older))
	return b
}

// weights returns the weights of the entries. Their sum is above 0.
func (in Input) weights() []float64 {
	sum := 0.0
	for i := range in.Entries { // in order, so that equal inputs have equal sums
		sum += in.Loads[i]
	}
	mean := sum / float64(max(len(in.Loads), 1))
	weights := make([]float64, len(in.Entries))
	for i := range weights {
		load, known := in.Loads[i]
		if !known {
			load = mean
		}
		weights[i] = load + mean/4
		if mean == 0 {
			weights[i] = 1
		}
	}
	return weights
}

// newest returns the generation of the member that joined last. Leaving members do not count.
func (in Input) newest() string {
	var last Member
	for _, m := range in.Members {
		order := cmp.Or(m.Joined.Compare(last.Joined), cmp.Compare(m.ID, last.ID))
		if !m.Leaving && (last.ID == "" || order > 0) {
			last = m
		}
	}
	return last.Generation
}

// Heirs returns the members that get the entries of ended owners, by entry. Sound next owners are kept.
// The result is empty if no member stays.
func (in Input) Heirs(ended func(protocol.ID) bool) map[int]protocol.ID {
	b, heirs := in.board(), map[int]protocol.ID{}
	orphans := b.heaviestFirst(func(_ int, e protocol.Entry) bool { return e.Owner == "" || ended(e.Owner) })
	for _, i := range orphans {
		next := b.all[b.Entries[i].Next]
		if next != nil && !next.Leaving && b.confidence(i, next) == Sound {
			heirs[i] = next.ID // it warms already
		} else if m := b.lightest(i); m != nil {
			m.weight += b.weights[i]
			heirs[i] = m.ID
		}
	}
	return heirs
}

// heaviestFirst returns the entries for which a function is true.
func (b *board) heaviestFirst(is func(int, protocol.Entry) bool) (entries []int) {
	for i, e := range b.Entries {
		if is(i, e) {
			entries = append(entries, i)
		}
	}
	slices.SortStableFunc(entries, func(x, y int) int { return cmp.Compare(b.weights[y], b.weights[x]) })
	return entries
}

// lightest returns the member with the lowest weight of those that can own an entry and deserve the
// most confidence, or nil. Of these, the members of the newest generation come first.
func (b *board) lightest(entry int) (found *member) {
	for _, c := range []Confidence{Sound, OnTrial, Doubtful} {
		for _, members := range [][]*member{b.members, b.older} {
			for _, m := range members {
				if b.can(entry, m) && b.confidence(entry, m) == c && (found == nil || m.weight < found.weight) {
					found = m
				}
			}
			if found != nil {
				return found
			}
		}
	}
	return nil
}

// confidence returns the confidence in a member for an entry. A member that does not serve the entry
// deserves none, nor does one that serves nothing and has its share. One trial at a time is enough.
func (b *board) confidence(entry int, m *member) Confidence {
	isFull := b.Unproven != nil && m.weight+b.weights[entry] > b.share && b.Unproven(m.ID)
	if b.isUnserved(entry) && (isFull || b.Entries[entry].Owner == m.ID) {
		return Doubtful
	}
	if b.Confidence == nil {
		return Sound
	}
	c := b.Confidence(entry, m.ID)
	if c == OnTrial && m.tried {
		return Doubtful
	}
	return c
}

func (b *board) isUnserved(entry int) bool { return b.Unserved != nil && b.Unserved(entry) }

func (b *board) can(entry int, m *member) bool { return b.Can == nil || b.Can(entry, m.ID) }

// byWeight orders members.
func byWeight(x, y *member) int { return cmp.Compare(x.weight, y.weight) }

// IsUneven reports whether a member differs from the mean by more than 20 %, and a move would help.
func (in Input) IsUneven() bool {
	b := in.board()
	_, _, ok := b.next()
	return ok && !b.mixed
}

// Moves returns the moves that are to begin now.
func (in Input) Moves() []protocol.Move {
	b := in.board()
	if len(b.members) == 0 {
		return nil
	}
	moves := b.away()
	for !b.mixed && !b.orphans { // the entries that heirs get are not known here
		move, mean, ok := b.next()
		if !ok || b.Uneven < Patience && b.all[move.To].weight >= mean/2 {
			break
		}
		moves = append(moves, b.begin(move))
	}
	return moves
}

// away returns the moves of the entries that leavers own, and of those that their owners do not serve.
// The latter stay unless another member deserves more confidence.
func (b *board) away() (moves []protocol.Move) {
	owned := b.heaviestFirst(func(i int, e protocol.Entry) bool {
		owner := b.all[e.Owner]
		return owner != nil && e.Next == "" && (owner.Leaving || b.isUnserved(i))
	})
	for _, i := range owned {
		heir := b.lightest(i)
		if heir == nil {
			continue
		}
		move := protocol.Move{Entry: i, To: heir.ID}
		if b.all[b.Entries[i].Owner].Leaving || b.confidence(i, heir) != Doubtful && !b.avoids(move) {
			moves = append(moves, b.begin(move))
		}
	}
	return moves
}

func (b *board) avoids(move protocol.Move) bool { return b.Avoid != nil && b.Avoid(move) }

// begin adds a move to the weights.
func (b *board) begin(move protocol.Move) protocol.Move {
	b.all[b.Entries[move.Entry].Owner].weight -= b.weights[move.Entry]
	to := b.all[move.To]
	to.weight, to.tried = to.weight+b.weights[move.Entry], true
	b.Entries = slices.Clone(b.Entries)
	b.Entries[move.Entry].Next = move.To
	return move
}

// next returns the move that helps most from the heaviest to the lightest member, and the mean weight, if
// one of the two differs too much from it. While no move between the two helps, the next lightest and
// then the next heaviest are looked at, as if the group had no others: the heaviest may have one
// large entry, and the lightest may be doubtful.
func (b *board) next() (best protocol.Move, mean float64, ok bool) {
	members := slices.SortedStableFunc(slices.Values(b.members), byWeight)
	for heavy := len(members) - 1; heavy > 0; heavy-- {
		for light := range heavy {
			from, to := members[heavy], members[light]
			mean = meanOf(members[light : heavy+1])
			if from.weight <= mean*(1+tolerance) && to.weight >= mean*(1-tolerance) {
				if light == 0 {
					return best, mean, false
				}
				break
			}
			if best, ok = b.best(from, to); ok {
				return best, mean, true
			}
		}
	}
	return best, mean, false
}

// meanOf returns the mean weight of members.
func meanOf(members []*member) (mean float64) {
	for _, m := range members {
		mean += m.weight / float64(len(members))
	}
	return mean
}

// best returns the move between two members that helps most, if there is one that helps.
func (b *board) best(from, to *member) (best protocol.Move, ok bool) {
	difference := from.weight - to.weight
	for i, e := range b.Entries {
		if e.Owner != from.ID || e.Next != "" || b.weights[i] >= difference || !b.can(i, to) {
			continue
		}
		c, move := b.confidence(i, to), protocol.Move{Entry: i, To: to.ID}
		if c == Doubtful || b.avoids(move) {
			continue
		}
		most := difference
		if c == OnTrial {
			most = 0 // the lightest entry
		}
		if !ok || b.isBetter(i, best.Entry, most) {
			best, ok = move, true
		}
	}
	return best, ok
}

// isBetter reports whether moving an entry is better than moving another one: the heaviest one of those
// that are at most half of a difference is the best.
func (b *board) isBetter(i, than int, difference float64) bool {
	x, y := b.weights[i], b.weights[than]
	switch fits, other := x <= difference/2, y <= difference/2; {
	case fits != other:
		return fits
	case x != y:
		return fits == (x > y)
	}
	return b.Entries[i].Epoch < b.Entries[than].Epoch
}
