// Package queue is the work queue of a controller: a [Queue] hands keys to workers, fairly, and
// keeps the reasons for which each key is to run.
//
//	Add ─▶ flow "a" ─┬─ Changes     ▢▢▢        ┐
//	                 ├─ Requeues    ▢          │  round robin
//	                 └─ Background  ▢▢▢▢▢▢     ├─ over flows ──▶ Get ─▶ worker ─▶ Done
//	       flow "b" ─── …                      │                                  │
//	                                           ┘                                  │
//	        ▲ timers: BackingOff, requeues ◀──────────────────────────────────────┘
//
// A key is Idle, Queued, Running, Parked or BackingOff ([State]):
//
//	Idle ──Add──▶ Queued ──Get──▶ Running ──Succeed, Fail──▶ Idle, or Queued if there was an Add
//	                ▲                ├──────Retry──────────▶ BackingOff ──time, change──▶ Queued
//	                └────────────────┴──────Park───────────▶ Parked ──Wake──▶ Queued
//
// # Algorithm
//
//  1. A flow is the keys that share a namespace. The flows that have a queued key take turns. A
//     flow that holds all workers but one has no turn, unless it is alone: no other flow has a
//     queued key, or has started one within a minute.
//  2. Within a flow, the next key is the one with the earliest sum of the time at which it was
//     queued and a step for each band below Changes. So a key rises one band per step.
//  3. An Add for a queued key adds its reason, and moves the key to a more urgent band if its
//     turn comes earlier there. An Add for a running key leads to another run.
//  4. A failed key waits for a delay that doubles with each failure, and at least for the time that
//     the outcome names. A change ends the wait once the first delay and that time have passed, a
//     Requeue once that time has.
//  5. A parked key keeps its reasons. It waits for Wake without a goroutine.
//
// With F flows that have queued keys, a key starts after at most F × n other starts, and one
// running call, where n counts the keys of its flow that were queued before it or within two
// steps after it.
//
// # Concurrency properties
//
// One mutex guards a queue. Get waits on a condition variable; a timer wakes the waiters when a
// delay is over. There is no goroutine per key. Equal calls at equal times have equal results.
//
// # Memory
//
// A key takes about 70 bytes while it is not idle or waits for a requeue, and 8 and the size of R
// for each of up to eight reasons. Idle keys without a requeue take no memory.
package queue
