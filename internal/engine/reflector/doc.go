// Package reflector keeps a queue in step with a collection on an API server: a [Reflector] lists
// the collection, watches it, resumes the watch and lists again. Its [Reflector.Health] reports
// which of these it is doing and why.
//
//	            not streamed, silent
//	streaming ───────────────────────▶ paging ◀─┐ a page fails
//	    │                               │  └────┘
//	    │ the list is complete          │ the last page
//	    │                               ▼
//	    │        ┌───────────────── opening ◀──────────────┐
//	    │        │ the watch          │ ▲                  │
//	    │        │ has begun          │ │ no older version │
//	    ▼        ▼    a rewind may be ▼ │                  │
//	  watching ◀──────────────────▶ checking               │
//	    │                               │                  │
//	    │ expired, lost,                │ a rewind         │ finished, torn, busy, broken
//	    │ undecodable twice,            │                  │
//	    ▼ useless three times           ▼                  │
//	 a list (streaming or paging) ◀─────┘     watching ────┘
//
// Between a failure and the state that follows it, backingOff waits.
//
// # The states
//
// Each state is a struct with the data that it needs, and its step returns the next state. The
// table of each state's type lists the ways out of it. Data that outlives a state is in
// [Reflector]. classify returns how a watch or a list ended, and next.go has what follows.
//
//  1. streaming asks for a watch that begins with the whole collection (sendInitialEvents). The
//     objects are staged, and handed on as one Replace when the list is complete. A server that
//     refuses or fails twice in a row is listed in pages once. If it falls silent, and pages
//     succeed, twice with no streamed list completed in between, it is listed in pages for good:
//     such a server, or a proxy, does not end its streams, and every list would wait again.
//  2. paging reads pages of [Options.PageSize]. A later page that fails is asked for again, up to
//     eight times. The first list takes the state that the server has in memory (version "0")
//     unless [Options.ConsistentFirstList] is set; every later one is consistent (version "").
//  3. opening asks for a watch from the last version. While the last event is a delete, it asks for
//     the version before that one, because a server may delete several objects at one version.
//  4. watching hands on the events of one read at a time. A watch that is refused, cut or
//     undecodable, or ends within a second, is useless unless it brought something new. Three
//     useless watches in a row lead to a list. One of them must have begun, or the server must have
//     told its version: a server that was away is not listed by all its clients at once. If the
//     next watch is useless too, the list follows at once.
//  5. checking lists one object to learn the server's version: see Rewinds.
//  6. backingOff waits: twice as long after each failure, with jitter, and never shorter than the
//     server's Retry-After, up to 5 minutes. A watch that makes progress resets the wait.
//
// # Rewinds
//
// A server that was set back to an older state leaves a watch from a newer version quiet (P16). A
// check follows
//
//   - a watch that lasted and brought nothing, not even a bookmark;
//   - a bookmark older than the reached version, and an event older than the newest, without a
//     newer one after it;
//   - ten seconds without contact before a watch begins. Contact is an event, a page, an answered
//     check, and the beginning and the orderly end of a watch. A refusal is no contact: a server
//     that has just started with an older state refuses requests too;
//   - an end out of order, when the next watch brings a bookmark or ends in order, or two minutes
//     later, when a watch begins.
//
// A check asks for the object that had changed last when it became due. history keeps the last
// change of each slot, because the slot of the very last one may go. If that change was a delete, it
// asks for the newest cached object as well: a server without a deleted object may be of any
// history. If the server has the object in an older state, or in another one at the same version,
// or has it not and the watch never brings its end, the server has passed the reached version after
// it was set back. Where no bookmark tells what a watch has passed, the next watch is asked to end
// within five minutes. If it lasts for four, ends in order and has not brought the end, a second
// check that misses the object leads to a list, which shows a new history by older states. A check
// that fails while a watch runs is made again after half a minute, then after a minute and so on,
// or as late as the server asks, when the watch brings something: the events of such a watch may be
// of the new history.
//
// A consistent list begins a new history if its version is lower than the reached one, if a check
// has found so, or if it has an object in an older state than the cache has, at a version before
// the one of the list. Such a list decodes everything: if only its end shows that, it is read
// again.
//
// # Silence
//
// A watch is closed and resumed when it outlives its timeout, and when it brings nothing for
// several times its own longest wait between two bookmarks, or the wait of an earlier watch: the
// constants of stream.go say how long. Only waits for the stream are timed, not waits for the queue
// (P15). A list is ended when it brings nothing for [Options.MaxSilence], and so is a watch that
// does not begin.
//
// # Slots
//
// With [Options.Slots], objects of other slots are left out: by the source before they are decoded,
// or else after that.
//
//  1. Slots come into the Holding first. [Reflector.Merge] then wakes filling, which lists their
//     objects beside the watch, with the pages, retries and waits of every list. The watch brings
//     the changes of these slots from that moment on, and the list is consistent: so no change is
//     missed. Of what both have, the later state counts.
//  2. A list of Run that began before slots came is void, and one that began after it takes the
//     place of their list. Before the first list nothing else is needed.
//  3. While the server honours shard selectors, lists and watches select the slots by UID. The
//     server is never relied on: objects that come are filtered all the same. When slots come that
//     the watch does not select, it hands on nothing more from that moment, ends, and is begun anew
//     from the last version with the wider selector. When slots go, the watch stays.
//  4. The shardInfo of a list shows that the server honours selectors. Until then, it is asked
//     before each list and watch: see requests.selection. Checks never have a selector.
//  5. Slots go from the Holding first. [Reflector.Leave] returns when no event that was decoded
//     before is on its way: then their objects can leave the cache.
//
// # Objects on their way to the queue
//
// An object that [Options.Accept] refuses, or that the source marks as wrong, is dropped and counted;
// a cached object of that key has left the collection and is deleted. A transform that fails leaves
// the known state. A delete is handed on even then. Lists after the first stage the cached object in
// the place of a listed one with its UID and version, which the source does not decode.
//
// # Concurrency properties
//
// Run is the only goroutine. It calls the functions of [Options]; Known also while the source
// reads. With Slots, filling has another one, which Run waits for. It calls Accept, Transform and
// Share too, and lists and events are handed on under one lock. The other methods may be called
// from any goroutine.
//
// # Memory
//
// Beside the stream's buffer, a reflector holds one staged list while it lists: 64 bytes per object
// for a pointer-like T, and the decoded objects. Keys of cached objects are allocated in blocks of
// 16 KiB. From 16,384 objects on, a stream that repeats objects is indexed by key, and only the
// newest state of each stays. Where versions need not order states (Options.Compare), the keys and
// versions of the last 64 events stay, too.
package reflector
