// Package plan decides which member of a group should own which entries. An [Input] holds the
// entries, members and loads that the planner knows. Its methods return [protocol.Move] values
// and heirs.
//
//	crashed  ─▶ Heirs: at once, to the members with the least weight
//	leaving  ─▶ Moves: all entries of the member, to the newest generation
//	unserved ─▶ Moves: the entries that their owners do not serve, to members that can
//	empty    ─▶ Moves: a member with less than half of its share, unless two generations live
//	uneven   ─▶ Moves: beyond 20 % of the mean for some minutes
//
// # Algorithm
//
//  1. The weight of an entry is its load, and a quarter of the mean load, so that entries without
//     load are spread too. A load that is not known is the mean. The weight of a member is the sum
//     for the entries that it owns after the present moves.
//  2. One move takes an entry from the heaviest to the lightest member: the heaviest entry that is
//     at most half of their difference, else the lightest one that is less than the difference.
//     Each such move lowers the sum of the squares of the weights, so that equal loads never lead
//     back. Of equal entries, the one that has moved least often is moved.
//  3. If the two members have no such move, the next lightest and then the next heaviest are looked at,
//     and the mean is that of the members from one to the other. So a member with one large entry, or
//     one to which moves fail, leaves the others to share the rest.
//  4. All moves begin at once: a member that joins warms all its entries with one list. While an
//     entry has no live owner, no move for even weights begins, as the heir's weight lacks that entry.
//  5. The newest generation is that of the member that joined last. While two generations live, it
//     inherits and weights have no effect, so that a rolling update moves an entry once. Entries that
//     none of its members can own go to the others.
//  6. A member that has failed is doubtful: it inherits what no other member, of any generation, can
//     own. Later it is on trial: it gets the lightest entry, and the next one once it has succeeded.
//     Entries that their owners do not serve stay while all other members are doubtful. A member that
//     serves nothing yet gets at most its share of them.
//
// Equal inputs have equal results, whatever the order of the members.
//
// # Concurrency properties
//
// All functions are pure.
//
// # Memory
//
// No memory is kept between calls.
package plan
