// Package tidingstest tests informers by the contract. [Run] runs informers of every [Kind]
// against any [Server], apisim or a real one, and fails the test if a property does not hold.
// [Tests] returns the tests one by one. Your own [Informer] can be tested as a Kind; [Native]
// and [Shared] make one of an informer of package tidings or of client-go's type.
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
//     a handler that is added before it runs. It writes through a client of its own and
//     keeps the states that the informer should hold.
//  2. Every state that is written has a number, and numbers grow. They distinguish and
//     order states, also on fakes, which have no versions.
//  3. Every handler adds up its events and notes those that the contract never allows: an
//     add of an object that is there, an update from another state than the last, a state
//     that goes back, two calls at once, a call after the end. Every test fails on these.
//  4. A gate in the informer's transport loses connections, refuses requests, holds back
//     answers, and refuses versions as expired. So these need no support by the server.
//     Faults that the server itself has to make are fields of Server.
//  5. A test waits for expected events for up to Server.Patience, and checks after each call
//     of a handler. To show that nothing more comes, it makes an object last: a handler that
//     received it has received everything before.
//
// # Concurrency properties
//
// A test deletes its namespaces. On servers without a namespace controller, the objects in
// them remain. Tests may run side by side, except those that change the server or the
// process for others; [Run] runs those alone. Each may run within a
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
// Give a server whose connections, history and backups nobody else changes, and a new fake
// clientset to each test. There is no test of P17: an option of an informer turns on the
// search for writes to shared objects, and such a write is a data race.
package tidingstest
