// Package lease has the code that all holders of Leases share, in an election and in a group of
// shards: a [Client] sends requests of Leases, a [Follower] watches them, a [View] puts what was
// observed in order, a [Holder] renews one, and a [Term] is the time during which its holder may
// write.
//
//	sent                                 fence          expired
//	  │◀───────── 4/5 of the duration ─────▶│◀── 1/5 ──▶│
//	  │  the term is open                   │ closed    │ others may take the Lease
//
// # Rules
//
//  1. A term is open until its fence: the time before the last successful renewal was sent, plus
//     the whole seconds of the record, minus a fifth. The time is the larger one of Go's clock and
//     CLOCK_BOOTTIME. A closed term stays closed.
//  2. A renewal has the version that was observed last. After a conflict the Lease is read, and the
//     renewal is sent once more if it has the same holder. The time between renewals counts from
//     the sending of the last success, the write that won the term included.
//  3. Each request ends after a fifth of the duration. After one without an answer, the next uses
//     another connection. A failure is followed by another try after a sixtieth of the duration,
//     doubled up to a fifteenth.
//  4. The watch resumes where it ended. After a duration without an event, in which each holder
//     renews its Lease, and after watches that fail, it begins with a list. While list or watch are
//     forbidden, the Leases are read every fifth of the duration.
//  5. An observation that is older than the last one of its Lease has no effect, unless a read or a
//     list shows that the server has lost versions: nothing else was observed since it was sent.
//  6. An answer of anything else than the API server, such as a proxy, says nothing of a Lease.
//
// # Concurrency properties
//
// A Client, a Term and Failures may be used from any goroutine, a View under the lock of its owner.
// A Follower runs in one goroutine, and its Restart may be called from any.
//
// # Memory
//
// Nothing is kept but the last failure, and the version of each Lease in a View.
package lease
