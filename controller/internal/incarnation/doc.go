// Package incarnation tracks the objects that calls were made for, so that the end of each UID is
// one call, before any call for a later UID of its key (C6): a [Tracker] is told of calls and of
// events.
//
//	Begin ──▶ Nothing, Present: a call for the cached state
//	      ──▶ EndPending: the object is not cached, and the event of its end is yet to come
//	      ──▶ Ended: a call for the last state ──Succeeded or terminal──▶ End: the key is forgotten
//
// # Concurrency properties
//
// One mutex guards a Tracker. Begin reads the cache under it, so that it misses no end in between.
//
// # Memory
//
// A key that calls were made for takes 73 bytes: its UID and the version of its last successful
// call.
package incarnation
