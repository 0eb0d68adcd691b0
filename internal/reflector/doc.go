// Package reflector keeps a queue in step with a collection on an API server: a
// [Reflector] lists it, watches it, resumes the watch and lists again, and says
// in its [Health] which of these it is doing and why.
//
//	            ┌─────────────── refused ──────────────┐
//	            │                                      ▼
//	start ─▶ streamList ──────┐                     pageList
//	            ▲             │ whole collection       │
//	            │             ▼                        │
//	            │           watch ◀────────────────────┘
//	            │             │ ended, cut, failed
//	            │             ├──▶ watch again, from the last version
//	  expired,  │             ├──▶ probe ─▶ watch again, or list
//	  undecodable twice,      ▼
//	  of no use three times ◀── backoff
//
// # The state machine
//
// Every state is a method that returns the next one; nil ends Run.
//
//  1. streamList asks for a watch that begins with the whole collection
//     (sendInitialEvents). A server that does not stream leads to pageList for good, one
//     that refuses or fails twice in a row for once, and so does one that falls silent, at once.
//     If pages came after that twice, with no streamed list completed in between, it is
//     for good: such a server, or something in front of it, never ends its streams, and
//     every list would cost the wait again. The objects are staged; the event that
//     ends them hands them on as one Replace, and the same stream goes on as the
//     watch.
//  2. pageList reads pages of [Options.PageSize]. A page after the first that fails is
//     asked for again after a wait, eight times, and the pages before it stay staged. When the
//     server forgets the token between two pages, sends one or a page again, or sends three empty pages
//     in a row, the list starts again without pages. The first list takes what the server has
//     at hand (version "0") unless [Options.ConsistentFirstList] is set; every later one is
//     consistent (version "").
//  3. watch follows the stream from the last version and hands on what one read
//     brought. While the last event is a delete, the next watch begins at the version before
//     it, because a server may delete several objects at one version. How a watch ended is an
//     ending: expired or lost leads to a list; undecodable leads to a watch from the
//     same version and the second time to a list; refused, by an answer or an event, and an
//     end within a second that brought nothing new, lead to a list the third time; busy and
//     broken lead to a watch. With anything new the count begins anew. Before a server that
//     refuses or cuts watches is listed for that, it is probed, so that one which was away is
//     not listed. If a watch fails in these ways after such a list, it is listed at once.
//  4. probe lists one object to learn the version that the server is at, where a watch
//     may be quiet for ever, because the server was set back to an older state. Before the
//     next watch begins, that is after one that has lasted and brought nothing, not even a
//     bookmark, after a bookmark of an older version than was reached, and after an event of
//     one that nothing newer than what was reached follows. When a
//     watch has just begun, it is after ten seconds without contact: from the last event,
//     bookmark, page, orderly end of a watch or answer below 500, to the beginning of the
//     watch. An older version leads to a list that begins a new history, any other to the
//     watch. If the look fails, a watch that has begun goes on; one that has not
//     begins after three looks that fail.
//  5. backoff waits: twice as long after each failure, with jitter, and never
//     shorter than the server's Retry-After. A watch that made progress starts
//     the count anew.
//     A Retry-After counts up to 5 minutes.
//
// # Silence
//
// A watch is torn down and resumed when it outlives the timeout that it asked for by
// [Options.Grace], and when it brings nothing for four times the longest wait between
// two bookmarks that it has had itself, but not before 30 seconds. A watch that has
// brought fewer than two bookmarks has no such cadence. Only the waits for the stream
// are timed, not those for the queue (P15).
//
// A list is ended when it brings nothing for [Options.MaxSilence]: no byte of a page, no
// byte or object of a streamed list. Each sign of life begins the time anew. A streamed list
// has the timeout of a watch besides, which it goes on as.
//
// # A resource that is missing
//
// It is asked for again after each backoff, which is how it is found when its
// definition is installed. With [Options.Optional] it counts as an empty collection
// meanwhile: at once if nothing was listed yet, and when the server has said nothing
// else for a minute if something was.
//
// # What reaches the queue
//
// An object that [Options.Accept] refuses, or that the source marks as wrong, is
// dropped and counted. If the cache holds an object of that key, it has left the
// collection and is deleted. A transform that fails leaves the known state; a
// delete is handed on even then. A consistent list whose version is lower than the
// one before, or that follows a probe which found so, begins a new history (P16): all
// it says holds.
//
// # What a list finds unchanged
//
// Every list after the first has the source ask (source.IsCached) whether an object is held:
// whether the cache has it, in this scope, with the same UID and the same version, and
// versions can be compared. If so, the cached object is staged on the spot, and the
// source does not decode the other. It was accepted and transformed when it was cached.
// Where the source does not ask, the decoded object is compared in the same way, and is
// garbage at once. Both are given up for a list that begins a new history: if such a list
// is found out at its end, it is read again, with nothing held. What was staged of a
// list that fails is forgotten.
//
// # Concurrency properties
//
// Run is the only goroutine; [Options.Accept], [Options.Transform] and
// [Options.Known] are called on it, the last also while the source reads. Health may be asked from anywhere.
//
// # Memory
//
// Beside the stream's buffer, a reflector holds one staged list while it lists: 64 bytes
// per object for a pointer-like T, and what was decoded. Of an object that is held there
// is also the key, 16 KiB of keys in one allocation. Room for as many as the last list had
// is made at once. What a stream says twice is looked for from 16,384 objects on, whenever there are
// twice as many as were left.
package reflector
