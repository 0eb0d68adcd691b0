// Package election holds a Lease of coordination.k8s.io/v1: an [Elector] is a candidate for it, and
// a [Term] is a time during which the candidate may write to the cluster.
//
//	            free ──────────▶ update or create
//	Standby ──────────────────────────────────────▶ Leading ◀──┐
//	   ▲  ▲                      │ conflict            │  └─────┘ a renewal succeeded
//	   │  └──────────────────────┘                     │
//	   │                                               │ the term closes, or Run's context ends
//	   │ lead returned, the term was lost              ▼
//	   └─────────────────────────────────────────── Draining ── grace over ──▶ ErrStragglers
//	                                                   │ lead returned, the term is open
//	                                                   ▼
//	                                               released ──▶ Stopped
//
//	sent                                 fence          expired
//	  │◀───────── 4/5 of the duration ─────▶│◀── 1/5 ──▶│
//	  │  the term is open                   │ closed    │ others may take the Lease
//
// # Rules
//
//  1. The record is client-go's: holderIdentity, leaseDurationSeconds, acquireTime, renewTime and
//     leaseTransitions. A released Lease has the holder "" and one second.
//  2. A Lease may be taken if it has no holder, or if its record has not changed for its duration
//     on the candidate's clock. The write has the resource version that was observed.
//  3. A term is open from the success that won it to the fence: the time before the last successful
//     renewal was sent, plus the whole seconds of the record, minus a fifth. The time is the
//     larger one of Go's clock and CLOCK_BOOTTIME.
//  4. A closed term stays closed. The next one has another identity.
//  5. A term closes at once when the Lease is deleted, or names another holder. Others treat a
//     Lease that is gone as held for the duration of its last record.
//  6. Renewals go on until lead has returned. Then the term closes, and then the Lease is released.
//     A lead that does not return within its grace is not followed by a release.
//  7. A holder can leave versions to the next one: in an annotation, with the count of transitions.
//     They are valid while the Lease is released and has that count.
//
// # Times
//
// The default duration is client-go's, 15 s. A renewal is sent every fifth, 3 s, and each request
// ends after a fifth: at least three renewals that hang fit before the fence. A failure is followed
// by another try after a sixtieth of the duration, doubled up to a fifteenth: 250 ms to 1 s.
// A conflict is followed by a read at once, and a try that fails again by a delay. Between two
// delays, the loop sends at most four requests and the watch two.
// A take-over waits for a random part of a sixtieth, so that one of many standbys is first.
//
// The Lease is watched. A watch that turns out to be silent is restarted: a candidate that takes
// the Lease too early gets a conflict. While list or watch are forbidden, the Lease is read every
// fifth of the duration, and [Health] shows it.
//
// # Concurrency properties
//
// Run has a goroutine for the watch, one that calls OnNewLeader, and during a term one that renews
// it and one that runs lead. It waits for all of them, except for a lead that does not return
// within its grace. Elector.mu is taken before Term.mu. No request is sent under a lock.
//
// # Memory
//
// An elector keeps one Lease.
//
// # Duties of the caller
//
// Check [Term.Err], or Remaining, before each write, and end each write at the fence. Return from
// lead once its context has ended and no call of the term runs. Exit, or name the calls, when Run
// returns [ErrStragglers].
//
// # Limits
//
// A process whose clocks all stood still, as in a virtual machine that was paused, keeps its term
// until its next renewal fails. A request that was sent before the fence may be applied after it.
// A candidate that starts while there is no Lease creates it at once: it cannot know that one
// was deleted a moment ago. client-go's elector does so even later, so the Lease must not be
// deleted while it is among the candidates. When the server is restored from a backup, two terms
// can be open until the holder notices, at its next renewal at the latest.
//
// The lock is a Lease. ConfigMaps and Endpoints, the locks of old versions of client-go, are not
// supported: move to Leases with client-go's multilock first. Nor are coordinated elections, in
// which the server writes the holder: Run returns an error for a Lease with a strategy.
//
// The record, and when a Lease may be taken, are those of client-go v0.37.1, packages
// tools/leaderelection and tools/leaderelection/resourcelock. Requests, watch, renewals and fence
// are those of internal/lead/lease, which groups of shards use too.
package election
