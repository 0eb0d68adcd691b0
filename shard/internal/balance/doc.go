// Package balance decides which member of a group should own which entries. A [Table] has the
// observations that all members share, a [State] the times that patience needs, and a [Plan] the
// moves.
//
//	no live owner ─▶ at once, to the lightest member
//	leaves, gives ─▶ at once; while two generations live, to other generations up to their share
//	join          ─▶ a member that takes has less than half its share: up to its share
//	weight        ─▶ a member was more than 20 % from the share for ten minutes
//
// # Algorithm
//
//  1. The weight of an entry is 1, and 16 for each of its objects. An unknown one is the mean
//     of the known. It does not change when the entry moves, so that a move has no cause for
//     another one. An entry counts for its next owner, once that is named.
//  2. The share is the mean weight of the members that stay, without the entries that are heavier
//     than it; each of these takes one member out, as it deserves one of its own. Repeat until
//     nothing is heavier.
//  3. Those members take that lack the fewest of their controllers. Entries without a live owner
//     that no such member can own go to members that decline or give: else they would have to wait
//     for the longest time for which a member declines.
//  4. Entries without a live owner go at once, heaviest first, each to the lightest member. Once
//     more than three quarters of the weight have none, and until all have one, but for thirty
//     seconds at most, no member gets more than 1/n, n being all members that have joined.
//  5. A rebalancing moves entries from the heaviest giver to the lightest receiver: the one that
//     brings the two closest together. The receiver must have less after it than the giver had
//     before, by more than a tenth of a share. Of equal entries the one with the lowest epoch is
//     moved: it has moved least often. All moves begin at once, as the receiver fills its caches
//     with one list. A crash of a member that has got entries less than ten minutes ago puts joins
//     off for five minutes. In this time heirs are members that have taken for longer, so that a
//     process that crashes whenever it gets entries does not hold them most of the time.
//  6. A rebalancing runs while an entry of a member that stays has a next owner, for ten minutes at
//     most. Entries that are still on their way then stay so, and count for the next owner. This is
//     observed in the map, so that another planner goes on with it.
//  7. A rebalancing by weight takes from members that were over the share, or gives to members that
//     were under it, for all of the ten minutes. A burst ends the patience of its own member alone.
//  8. While two generations live there is no rebalancing. The generation of a leaver shows the
//     direction: leavers give to other generations than their own; dead and giving members to
//     others than that of the last leaver. Thirty minutes without a join or an end count as one
//     generation.
//
// Equal tables have equal plans, whatever the order of the members. With m members, s entries and k
// moves a look costs O(m log m + s log s), which are sorts, and O(k (m + s)).
//
// # Concurrency properties
//
// All functions are pure. Every member observes each table, as it may be the next planner.
//
// # Memory
//
// A State has some hundred bytes for each member.
package balance
