// Package shard divides the objects of a controller, or the controllers of a manager, among several
// processes: a [Group] is the part of one process, a [Handler] does the work of a member, and a
// [Term] is the time of one membership. [Read] describes a group to processes that are not members.
//
//	Lease rollout           Lease rollout.a-x3…   Lease rollout.b-9f…
//	┌───────────────┐       ┌──────────────┐      ┌──────────────┐
//	│ slot 0    a   │       │ holder  a    │      │ holder  b    │
//	│ slot 1    a→b │       │ renewed 5 s  │      │ renewed 5 s  │
//	│ …             │       │ serving, load│      │ serving, load│
//	│ slot 255  b   │       └──────▲───────┘      └──────▲───────┘
//	└──────▲────────┘              │ only a              │ only b
//	       └── compare-and-swap by a and b ──────────────┘
//
// All state is in Leases of coordination.k8s.io/v1 in one namespace, which one watch follows: one
// for the map, and one for each member.
//
// # Rules
//
//  1. An object belongs to one of 256 slots, by its UID or by its namespace. The map has the owner
//     of each slot, with an epoch that rises with each change of it. Each change of the map is one
//     compare-and-swap, so that gaps and overlaps cannot be written.
//  2. A hand-over: the planner names the next owner, which warms and writes that it is ready. The
//     owner drains each slot separately and writes the other as its owner, with the versions of its
//     last writes. A hand-over that is not done in Options.HandOver is taken back, counted, and
//     tried again after a minute, or later if members fail: see below.
//  3. A member renews its Lease every third of its duration, 5 s of 15 s. Its term closes at the
//     fence, 4/5 of the duration after the last renewal was sent. A closed term stays closed: the
//     process drops all its slots and joins again with another identity, without slots.
//  4. A Lease that has not changed for its duration is released by another member, at that version.
//     Then its member has ended, and its slots are given away. Other members wait until the
//     member with the lowest identity has acted. A Lease that is gone has its duration from the
//     time at which that was first seen.
//  5. The live member with the lowest identity of those whose Lease names the map, and that do not
//     leave, plans: slots of leavers go to the newest generation, that of the process that joined
//     last, unless its members fail; slots that their owners do not serve go to members that can; a
//     member that joins gets half of its share at once, unless two generations live; a load that
//     differs from the mean by more than 20 % for two minutes moves slots. See the package
//     internal/plan.
//  6. A map that was deleted ends all members that have seen it. A new one is made once all Leases
//     that name the old one are released, or have run out. A map in which epochs have fallen or entries
//     are missing, as after the restoring of a backup, is deleted by the member that notices it. A
//     member whose write is answered with an earlier version than it has seen ends too.
//
// Rules 1, 2 and 4 are pure functions in internal/protocol. Its test explores all states that
// crashes, pauses, lost answers and stale reads can lead to.
//
// # Members that fail
//
// A member fails if a hand-over to it is taken back because it has not warmed, or if entries leave it
// because it does not serve them. For a minute, and twice as long after each further failure, up to
// eight, it gets only what no other member can own. Then it gets one slot. Once it reports that slot in
// order, it is a member like the others. All members observe failures in the map, so that the next
// planner knows of them.
//
// An entry leaves its owner if the owner has not reported it in order for twice the time after which
// uncovered slots are logged, and
//
//   - has not done so since it became the owner, or
//   - reports none of several slots in order.
//
// A slot that was in order is not moved because of one late key, as that key may be late elsewhere too.
// The next owner is a member that has reported slots in order for a while. One that reports none and has
// not failed gets at most its share. So little moves while all members fail. An entry that leaves
// owner after owner waits between its moves as long as a member that fails.
//
// The slots of a member fail together, as one call of Warm fills them. Controllers fail separately.
//
// # Controllers
//
// A controller.Slots is the [Handler] of controllers, by one option:
//
//	slots := controller.NewSlots(controller.ByNamespace)
//	c, err := controller.New(pods, controller.Options[*corev1.Pod]{…, Guard: guard, Slots: slots}, f)
//	group, err := shard.Join(ctx, config, slots, shard.Options{Namespace: "ops", Name: "rollout"})
//	err = c.Run(ctx)
//
// With controller.ManagerOptions.Slots it is a [Leader] too: each controller of the manager that has no
// slots is an entry of the map after those of the slots, and runs on its owner. Members list in their
// Leases the controllers that they can lead, and the planner keeps the list of the map. Controllers are
// planned by number.
//
// # Limits
//
// A write that was sent before the fence may be applied after it: the server does not know of the
// fence. Preconditions on UID and version close that gap; see the package controller/guard. A
// process whose clocks all stood still, as in a virtual machine that was paused, keeps its term
// until its next renewal fails. The effects of a call outside of Kubernetes are not fenced.
//
// # Health
//
// A slot is covered when its owner is live and reports it in order with its renewals. Each member
// records since when slots are uncovered, and logs those that are uncovered for longer than a crash
// and a hand-over explain. Read has no history: it uses the times that are written in Leases.
//
// # Concurrency properties
//
// A Group has a goroutine for the watch, and one that makes the decisions. A membership has one
// that renews, and one for each call of Warm and Drain, and for a write that is under way.
// [Group.Wait] waits for all of them. No request is sent, and no method of the handler is called,
// under a lock.
//
// # Memory
//
// A Group keeps the Leases of its group: a map of some kilobytes, and one kilobyte per member.
//
// # Duties of the caller
//
// If you write a Handler, filter by slots in it. Make all writes under the term. End the process
// when Wait returns [ErrStragglers].
package shard
