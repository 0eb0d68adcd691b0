// Package follow has [Follower]: a handler that adds up its events and checks that each
// follows from those before. [Event] is an event of an informer of any kind, with the states of
// its objects as text.
//
//	informer ──▶ Event ──▶ Follower ──▶ the state that the events add up to
//	                           └──────▶ events that the contract does not allow
//
// Tests compare the sum of the events with the cache and with the server.
//
// # Algorithm
//
//  1. The state of an object is a text of its label n, its version and its UID ([StateOf]).
//  2. A Follower holds the last state that it received of each key.
//  3. An event is wrong if it contradicts that state: an add of an object that is there, an
//     update or a delete of one that is not, an update from another state, the end of another
//     incarnation, or a state that is older. So are two calls at once, and a call after the end.
//
// # Concurrency properties
//
// The methods of a Follower may be called from any goroutine. Its fields must be set before
// the first event.
//
// # Memory
//
// A Follower keeps its events until they are taken, and the first ten that were wrong.
package follow
