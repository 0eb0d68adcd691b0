// Package leasetest has the test rig of the packages that hold Leases: [Start] returns a server for
// them, and a [History] runs their processes under random faults. Only tests use it.
//
//	Start ─▶ server with the namespace ops ◀─ Config("a"), Config("b"), Config("c")
//	                  ▲
//	                  └ History: faults of requests, restarts, cut connections, deleted Leases
//
// # Rules
//
//  1. The name of a process is the user agent and the token of its requests, so that [By] selects
//     them.
//  2. Everything runs in virtual time: the tests call it within bubbles of testing/synctest.
//  3. A History draws everything from one source of random numbers: a seed repeats it.
//
// # Concurrency properties
//
// A History runs in the goroutine that calls Run, and calls its functions there.
//
// # Memory
//
// A History keeps the faults that are not lifted yet.
package leasetest
