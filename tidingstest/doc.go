// Package tidingstest tests informers by the contract: [Run] has informers of every
// [Kind] follow any [Server], apisim or a real one, and fails the test where a property
// does not hold; [Tests] are the same, one by one. An [Informer] of one's own can be put
// to the same test as a Kind; [Native] and [Shared] make one of an informer of package tidings
// or of client-go's type.
//
//	             ┌────────────── a test of P01 … P20 ──────────────┐
//	writes ──────┤                                                 ├──── faults
//	             ▼                                                 ▼
//	          Server ◀──HTTP── gate ◀── Informer ──▶ handlers: a fold each
//	                    cuts, refuses,      │
//	                    stalls, forgets     └── cache
//
// # Algorithm
//
//  1. Each test makes namespaces of its own, an informer of the config maps in them, and
//     a handler that is there from the beginning. It writes through a client of its own
//     and keeps what the server holds.
//  2. Every state that is written has a number, and numbers grow: that tells states
//     apart and orders them, also on fakes, which have no versions.
//  3. Every handler adds up its events and notes those that the contract never allows: an
//     add of an object that is there, an update from another state than the last, a state
//     that goes back, two calls at once, a call after the end. Every test fails on these.
//  4. A gate in the informer's transport loses connections, refuses requests, holds back
//     answers, and says that the past is forgotten. So these need nothing of the server.
//     Faults that a server makes by itself are fields of Server.
//  5. What should come is waited for, up to Server.Patience, each time that a handler was
//     called. That nothing more comes is shown by an object that is made last: a handler that
//     received it has received everything before.
//
// # Concurrency properties
//
// A test leaves nothing behind but, on servers without a namespace controller, its
// namespaces and what is in them. Tests may run side by side, but for those that change
// the server, or the process, for others; [Run] knows them. Each may run within a
// testing/synctest bubble, where it takes no time, if Server.Settle is set; outside of one
// a kind takes half a minute, nearly all of it in the waits between an informer's attempts.
// Within bubbles, set apimachinery's utilruntime.ErrorHandlers to nil before: they keep the
// time of the last error, and sleep when it lies in the future.
//
// # Memory
//
// Handlers keep their events until the test is over: some hundred.
//
// # What a caller must do
//
// Give a server on which nobody else changes what [Server] has functions for, and for a
// fake clientset a new one to each test. There is no test of P17: an informer's option
// says whether it looks for writes to shared objects, and such a write is a data race.
package tidingstest
