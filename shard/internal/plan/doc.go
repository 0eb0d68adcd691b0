// Package plan says which member of a group should own which entries: an [Input] is what the
// planner sees, and its methods return [protocol.Move] values and heirs.
//
//	crashed ─▶ Heirs: at once, to the members with the least weight
//	leaving ─▶ Moves: all entries of the member, to the newest generation
//	empty   ─▶ Moves: a member with less than half of its share, unless two generations live
//	uneven  ─▶ Moves: beyond 20 % of the mean for some minutes
//
// # Algorithm
//
//  1. The weight of an entry is its load, and a quarter of the mean load, so that entries without
//     load are spread too. A load that is not known is the mean. The weight of a member is that of
//     the entries which it owns after the present moves.
//  2. One move takes an entry from the heaviest to the lightest member: the heaviest entry that is
//     at most half of their difference, else the lightest one that is less than the difference.
//     Each such move lowers the sum of the squares of the weights, so that equal loads never lead
//     back. Of equal entries, the one that has moved least is taken.
//  3. All moves begin at once: a member that joins warms what it gets with one list. None but those
//     of leavers begins while an entry has no live owner: its heir is not in the weights.
//  4. The newest generation is that of the member that joined last. While two generations live, it
//     inherits and nothing else moves, so that an entry follows a rolling update once. What none of its
//     members can own goes to the others.
//
// Equal inputs have equal results, whatever the order of the members.
//
// # Concurrency properties
//
// All are functions of their arguments.
//
// # Memory
//
// Nothing is kept.
package plan
