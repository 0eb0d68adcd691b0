// Package controller runs Kubernetes controllers on informers. A [Controller] calls a function for
// each object of its informer, when the object or one of its secondaries has changed. A [Secondary]
// is another informer that calls read. A [Guard] wraps the clients that calls write with. A
// [Manager] runs controllers by name, in one replica at a time. With [Slots], each of several
// replicas calls for a part of the objects.
//
// # Usage
//
//	guard, err := controller.NewGuard(config, controller.GuardOptions{})
//	client, err := kubernetes.NewForConfig(guard.Config())
//	web, err := controller.New(deployments, controller.Options[*appsv1.Deployment]{
//		Name: "web", Guard: guard,
//		Secondaries: []controller.Secondary{
//			controller.Owns(replicaSets),
//		},
//	}, reconcile)
//	err = web.Run(ctx) // the function writes with client
//
// # What happens to a change
//
//	informer ──▶ handler ────────────────┐
//	informer ──▶ handler ─▶ mapping ─────┼─▶ queue ─▶ worker ─▶ barrier ─▶ call of the function
//	 (secondary)                         │     ▲                  │              │ writes
//	                                     │     └──── parked ◀─────┘ behind       ▼
//	             requeue, retry, resync ─┘           until a cache shows       guard ──▶ API server
//	                                                 the earlier writes
//
// A change leads to a call in these steps:
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
// each key. The barrier outlives runs, as the caches do.
//
// # Slots
//
// With Options.Slots, a run of a controller is one membership of a group (package shard), which
// gives slots of objects to the process and takes them. The stay of a process in its group has
// memberships one after the other, and the method Run lasts as long as the stay. Keys of open slots
// alone are called:
//
//	       Serve             the caches have the versions
//	left ─────────▶ waiting ───────────────────────────────▶ open ──Drop──▶ left
//	                Shut, Unshut                             Shut, Unshut
//
// The life of a slot in a process:
//
//  1. A slot opens when the caches have reached the versions that its last owner has left, or the
//     server's after a crash. Then each of its keys is called once.
//  2. While a slot is shut, no call begins, and keys that become due are parked. The group gives
//     the slot away when no call runs, the server can apply no write of one any more, and the
//     caches show all of them. The newest versions go with the slot. Or the group opens the slot
//     again, and the parked keys are called.
//  3. Drop forgets the keys of a slot, and their failures. If the call for the end of an object has
//     not succeeded, the end is left to finalizers. Writes that do not show stay in the barrier.
//  4. The end of the context of a Run makes the process leave the group. Until it has left, calls
//     and the informers of the controllers go on.
//
// With ManagerOptions.Slots, a controller without slots is led as a whole: it is one more entry of
// the group, which is served, shut and dropped as a slot is.
//
// [Slots.Work] describes what the process does. A run turns once a second. A goroutine that has not
// turned for a minute, because code of the program does not return, makes others take the slots.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. A run has one goroutine per worker, one for the
// checks that no event leads to, and with a guard the goroutines that ask the server, for up to 256
// keys at a time. Run waits for all of them except for calls that do not return, which it names.
// Controller.mu is taken before run.mu, and both before the locks of a run's parts and of the rooms
// under controller/internal. Of these, only the workers' lock is held while another is taken, the
// queue's. No lock of a controller is taken under the locks of [Slots].
//
// # Memory
//
// Keys of slots that are not served take no memory. The packages under controller/internal say what
// a key takes: 73 bytes after its first call, and more while it is queued or held back.
package controller
