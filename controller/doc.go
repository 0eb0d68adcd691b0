// Package controller runs Kubernetes controllers on informers. A [Controller] calls a function for
// each object of its informer, when the object or one of its secondaries has changed. A [Secondary]
// is another informer that calls read. A [Guard] wraps the clients that calls write with. A
// [Manager] runs controllers by name, in one replica at a time. With [Slots], each of several
// replicas calls for a part of the objects.
//
//	informer ──▶ handler ────────────────┐
//	informer ──▶ handler ─▶ mapping ─────┼─▶ queue ─▶ worker ─▶ barrier ─▶ call of the function
//	 (secondary)                         │     ▲                  │              │ writes
//	                                     │     └──── parked ◀─────┘ behind       ▼
//	             requeue, retry, resync ─┘           until a cache shows       guard ──▶ API server
//	                                                 the earlier writes
//
// # What happens to a change
//
//  1. A handler of each informer receives every change, unfolded and in order (C2). It turns
//     states, old and new, into keys, and queues them with a reason (C7).
//  2. The queue hands keys to workers: flows have turns, changes come before requeues, and these
//     before the initial list (C4). A key is with one worker at a time (C1).
//  3. The barrier holds the key back while a cache does not show the writes of its earlier calls
//     (C3). A key that is held back is parked, without a goroutine, until an event shows the write.
//     After ten seconds the server is asked.
//  4. The call reads one state of each informer ([Read]). The guard records its writes, which it
//     recognises by their context.
//  5. The result sets the time of the next call (C5). The end of an object is a call too (C6).
//
// # Terms
//
// A run of a controller is one term: of an [Election], or of its own. At the end of the term the
// contexts of calls end, and the guard refuses their writes (C10). A run begins with a call for
// each key. The barrier outlives runs, as the caches do: the next term of the same process waits
// for the writes of the last one.
//
// # Slots
//
// With Options.Slots, a run of a controller is one membership of a group (package shard), which
// gives slots of objects to the process and takes them:
//
//		       Serve             the caches have the versions
//		left ─────────▶ waiting ───────────────────────────────▶ open ──Drop──▶ left
//		                Shut, Unshut                             Shut, Unshut
//
//	 1. Keys of open slots alone are queued and called. Informers with Slots.Held have the objects of
//	    the slots that this process serves or is to serve, others all objects.
//	 2. A slot opens when the caches have reached the versions that its last owner has left; after a
//	    crash, those of the server. The waits are bounded as at the beginning of a term. Then each key is
//	    called once.
//	 3. While a slot is shut, no call begins, and keys that become due are parked. The group asks again and
//	    again whether calls run, whether the server may still apply one of their writes, and whether the caches
//	    show all of them. Then it gives the slot away, with the newest versions at which own writes to
//	    it showed, or for which the caches had to wait. Or it opens the slot again: the parked keys are called.
//	 4. Drop forgets the keys of a slot, and their failures. An end of an object whose call had not
//	    succeeded is then left to finalizers. Writes that do not show stay in the barrier until they do.
//	 5. The end of the context of a Run makes the process leave the group. Until it has left, calls and the
//	    informers of the controllers go on, whichever context the informers were started with.
//
// With ManagerOptions.Slots, a controller without slots is led as a whole: it is one more entry of
// the group, which is served, shut and dropped as a slot is.
//
// What the process does is described in Slots.Work. Once a second each run turns, and it counts the
// objects of slots and looks for late keys every few seconds, for at most a hundredth of the time.
// A goroutine that has not turned for a minute, because code of the program does not return, makes
// others take the slots over.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. A run has one goroutine per worker, one for the
// checks that no event leads to, and with a guard those that ask the server, of up to 256 keys at a
// time. Run waits for all of them except for calls that do not return, which it names. Locks are
// taken in this order: Controller.mu, run.mu, then those of the barrier, the lives, the queue and
// the slots, of which no two are held together. No lock of a controller is taken under that of
// [Slots].
//
// # Memory
//
// Keys of slots that are not served take no memory.
//
// A key that calls were made for takes 73 bytes: its UID and the version of its last successful
// call. Package queue describes the memory of queued keys. A key that is held back takes about 400
// bytes until the caches show its writes.
package controller
