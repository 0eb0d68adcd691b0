// Package protocol decides which member may call for an entry of a group. An [Entry] is one line of
// the group's map. A [Member] holds the knowledge of one member about the map and about itself.
//
//	        Next names b          b is warm           a has drained
//	owner a ───────────▶ next b ───────────▶ ready b ───────────────▶ owner b, epoch + 1
//	   ▲                    │                   │
//	   └────────────────────┴───────────────────┘  taken back by a
//
//	owner a, and a is Ended ──any member──▶ owner b, epoch + 1
//
// Everything is a pure function of its arguments and its receiver. Requests, clocks and Leases are
// the caller's.
//
// # The protocol
//
//  1. The map is one object. A member changes it by a compare-and-swap of the version that it has
//     seen last, and keeps no older one.
//  2. The planner names the next owner of an entry. The next owner warms and writes that it is
//     ready. The owner then takes no more keys, drains, and makes the other member the owner.
//  3. From the moment at which it has drained until it has seen a newer map that names it the
//     owner, a member does not call for the entry: the answer to its write may be lost, and the
//     write may still be under way.
//  4. The owner takes an entry back whose hand-over is late, or whose next owner has ended. That is
//     a change of the map, too, so that a write that is under way fails.
//  5. Any other member may give away the entries of a member that has ended. A member ends
//     itself, or another one ends it by a swap of its Lease at the version that had not changed
//     for the Lease's duration. A member whose own term is closed calls and writes nothing, and
//     joins again with another identity.
//
// The test of this package explores all states of three members and two entries, with crashes,
// pauses, writes whose answer is lost or that arrive late, stale reads, and clocks that differ.
//
// # Concurrency properties
//
// A Member belongs to one goroutine.
//
// # Memory
//
// A Member holds one map, and a few bytes per entry.
package protocol
