// Package barrier holds keys back until the caches show the writes of their earlier calls (C3): a
// [Barrier] has the writes, and an [Asker] asks the server about those that no cache shows in time.
//
//	a call ends ──Record──▶ writes by key and object ──Hold──▶ parked, until one of these wakes it:
//	                           ▲        ▲        ▲              an event, the alarm, an answer
//	                         Event   CheckDue   Asker
//
// # A write
//
//  1. A write waits for each informer of its resource. It is settled when the cache shows it or a
//     later state (package written), when a later write of its key replaces it, or when the server
//     says that the cache cannot show it. A key is held back while one of its writes is not
//     settled.
//  2. Its event tells that a change was made by the call. A settled write is kept for a minute, so
//     that its event is recognised.
//  3. A key that was parked for ten seconds, or less where no event may come, is due: the server is
//     asked.
//  4. The versions at which writes show are kept by slot and part, for the next owner. When a cache
//     follows another history, they are lowered, and the server is asked about the writes that wait
//     for it.
//
// # Concurrency properties
//
// One mutex guards a Barrier. It reads caches under it and never asks the server. It outlives the
// runs of its controller, as the caches do. An Asker has up to 256 questions at a time.
//
// # Memory
//
// A key that is held back takes about 400 bytes until the caches show its writes. To add and to
// remove a write takes a constant time.
package barrier
