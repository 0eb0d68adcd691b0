// Package journal checks the acts of replicas of a sharded controller against the contract of
// shards. Each replica writes an [Entry] per line into its [Journal]. A [History] has the entries
// of all, with the [Fault]s that they suffered, the [Change]s of other clients and the [Applied]
// writes that the server has kept. [History.Check] returns a [Result].
//
//	replica a ── Entry… ──▶ file ──▶ Process ┐
//	replica b ── Entry… ──▶ file ──▶ Process ┤
//	faults of the test ───────────▶ Faults   ├──▶ History ──▶ Check ──▶ Result
//	writes of other clients ──────▶ Changes  │
//	a watch of the objects ───────▶ Applied  ┘
//
// All times are those of CLOCK_BOOTTIME, which the processes of one machine share.
//
// # Rules
//
//  1. A term is open from the first answer to a write of its Lease until the fence, 4/5 of the
//     duration after the last renewal was sent that had an answer before the fence. It may end
//     earlier by the replica's own doing.
//  2. S1: the calls of a key do not overlap, as far as their terms are open. Each is for a slot
//     that its replica serves, and epochs rise.
//  3. S2: a call after a hand-over begins with the last write of the calls before it.
//  4. S3: a write that was given to the client in a closed term is not sent. A write that is
//     applied after the next owner's first call was on its way when its term ended.
//  5. S5: the time in which a slot is not served begins with a drain or a fault, and is bounded.
//     No change stays without a call for longer than that, except while all workers of its owner
//     are in calls. A slot that has drained for an heir that crashes counts as a crash.
//  6. S6: no call is for an object that is gone, as no object is deleted.
//
// # Concurrency properties
//
// A Journal may be used from any goroutine. The other types may not.
package journal
