// Package written decides whether a [Cache] shows the writes of a client: a [Write] is held by a
// cache, or the server is asked about it, and its [Answer] tells whether the cache can show it at
// all.
//
//	guard.Write ──▶ Write ──Held──▶ Cache
//	                  │                yes: a call or a read may begin
//	                  └──Ask, when it is Due──▶ guard ──▶ Answer ──Take──▶ Write
//
// # When a write is held
//
//	object        the cached object has its version or a later one, or the cache has passed it
//	deletion      the object is not cached, or another one of its name is, and the cache has passed
//	              the version of the deletion, if that is known; without a UID: no object of the
//	              name is cached, or the cache has passed the version
//	conflict      the cached object has another version than the request, or a second is over
//	unknown       never: the server is asked at the time at which it has ended the request
//
// A cache that does not hold the namespace or the slot of the object shows nothing of it, nor does
// one that has stopped: then every write is held. A version or a UID that a transform has left out
// decides nothing: the version that the cache has reached stands for that of the object, and the
// object counts as the written one.
//
// # When the server is asked
//
// After ten seconds, and after one second if no event may come: a selector of the cache may hide
// the object or its end, or a collection was written, of which a version is known that no object of
// the namespace has. The answer settles a write that the cache cannot show: the server was set back
// and has lost it, the selector leaves the object out, or the cached object is the newest. Where no
// event may come, of an end that the selector may hide or of a collection, the cache lists again,
// and shows the write when it has reached its version. That it has what the server has would not
// do: its watch may have yet to bring the states of an object that came and went. A cache that
// could show the write after ten seconds, and does not, is told that its watch may be behind.
//
// # Concurrency properties
//
// A Write is a value without locks. Held reads the cache once, and decides about what it has read:
// heldIn is a pure function, of controllers and of clients alike. Ask reads it again after the
// answer.
//
// # Memory
//
// A Write has about 80 bytes, and the text of its key, UID and version.
package written
