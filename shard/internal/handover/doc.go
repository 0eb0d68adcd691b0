// Package handover decides which member may call for an entry of a group, and which state a member
// reports. An [Entry] is one line of the group's [Map]. A [Member] holds the knowledge of one
// member about the map and about itself, and a [Conduct] its state in its [Record]. A [Sight] is
// another member's Lease.
//
//	        next names b          b is warm           a has drained
//	owner a ───────────▶ next b ───────────▶ ready b ───────────────▶ owner b, epoch + 1
//	   ▲                    │                   │ a closes, and opens again
//	   └────────────────────┴───────────────────┘ b has ended, leaves or does not take: cleared by a
//
//	owner a, and a is Ended ──any member──▶ owner b, epoch + 1, versions unknown
//
// shard/TABLES.md lists the states of an entry and of a member.
//
// # The protocol
//
//  1. The map is one object. A member changes it by a compare-and-swap of the version that it has
//     seen last, and keeps no older one.
//  2. A plan names the next owner of an entry, see the package balance. The next owner fills its
//     caches and writes that it is ready.
//  3. Then the owner closes the entry: it begins no call. Once no call runs, no write of one is
//     without an answer, and the caches show the writes, it has drained, and makes the other member
//     the owner. If that takes longer than T, it opens the entry again without a write, and tries
//     later.
//  4. From the moment at which it has drained until it has seen a newer map that names it the owner
//     without a next one, a member does not call for the entry: the answer to its write may be
//     lost, and the write may still be under way.
//  5. The owner clears a next owner that has ended, leaves, or does not take. Nothing else ends a
//     hand-over.
//  6. Any other member may give away the entries of a member that has ended. A member ends itself,
//     or another one ends it by a swap of its Lease at the version that had not changed for the
//     Lease's duration. A member whose own term is closed calls and writes nothing, and joins again
//     with another identity.
//  7. The versions that the next owner has to reach stay in the map until it has opened the entry.
//     An owner that has not opened an entry passes them on.
//
// The test of this package explores all states of three members and two entries, with crashes,
// pauses, writes whose answer is lost, that arrive late or that are refused, stale reads, clocks
// that differ, calls that run, hang or leave writes without an answer, and lists that fail.
//
// # Concurrency properties
//
// Everything is a pure function of its arguments and its receiver: requests, clocks and goroutines
// are the caller's. A Member belongs to one goroutine.
//
// # Memory
//
// A Member holds one map, and some hundred bytes per entry.
//
// # Duties of the caller
//
// After each change call See, Try for the entries that are handed over, Acts, and Next, in this
// order. Make the calls of Acts before the next Try: the handler's report about calls must be newer
// than the call that shut the entry. Do not call Try while a refusal of a write of the map is
// pending.
package handover
