// Package shard divides the objects of controllers, or whole controllers, among several processes:
// a [Group] is the part of one process, a [Handler] does the work of a member, and a [Term] is the
// time of one membership. [Read] describes a group to processes that are not members.
//
// # Usage
//
//	slots := controller.NewSlots(controller.ByNamespace)
//	c, err := controller.New(pods, controller.Options[*corev1.Pod]{…, Guard: guard, Slots: slots}, f)
//	group, err := shard.Join(ctx, config, slots, shard.Options{Namespace: "ops", Name: "rollout"})
//	err = c.Run(ctx)
//
// # Leases
//
//	Lease rollout           Lease rollout.a-x3…   Lease rollout.b-9f…
//	┌───────────────┐       ┌──────────────┐      ┌──────────────┐
//	│ slot 0    a   │       │ holder  a    │      │ holder  b    │
//	│ slot 1    a→b │       │ renewed 5 s  │      │ renewed 5 s  │
//	│ …             │       │ open, weights│      │ open, weights│
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
//     compare-and-swap, so that gaps and overlaps cannot be written. A controller that is led as a
//     whole is an entry of the map like a slot.
//  2. A hand-over: the map names the next owner, which fills its caches and writes that it is
//     ready. The owner calls until it has drained: see the package internal/handover. Nothing times
//     a hand-over but progress.
//  3. A member renews its Lease every third of its duration, 5 s of 15 s, with a record of what it
//     does. Its term closes at the fence, 4/5 of the duration after the last renewal was sent. A
//     closed term stays closed: the process drops all its entries and joins again with another
//     identity.
//  4. A Lease that has not changed for its duration is released by another member, at that version.
//     Then its member has ended, and its entries are given away. The planner acts at once, the
//     other members one after the other. A Lease that is gone has its duration from the time at
//     which that was first seen.
//  5. The member with the oldest Lease plans, see the package internal/balance. Nobody is relieved
//     by others: a member that cannot do its work says so in its record, and gives its entries
//     away.
//  6. A map that was deleted ends all members that have seen it. A new one is made once all Leases
//     that name the old one are released, or have run out. A map in which epochs have fallen or
//     entries are missing, as after the restoring of a backup, is deleted by the member that
//     notices it. A member whose write is answered with an earlier version than it has seen ends
//     too.
//  7. The map's Lease names the group as its holder, for an hour, so that an election of the same
//     name waits. The last member that leaves releases it. Only Leases that members of this group
//     have made are ever deleted: a record has the name of its own Lease.
//
// shard/TABLES.md lists the states of an entry and of a member: who notices what, and when.
//
// # An orderly end
//
// It begins when the context of Join ends, or the work of the handler: a controller.Slots ends with
// the context of any Run that has it. Others fill their caches and take the entries; calls go on
// until then. At two thirds of Options.Grace, or when nobody can take anything, the contexts of
// calls that still run end. What still runs at the end of the grace is named by [ErrStragglers],
// and its Lease is not released.
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
// An entry is covered when its owner lives and calls for it. Else it has nobody, or is not ready,
// with the reason that its owner tells. A covered entry is late while a key waits for long: nothing
// moves because of it. Each member records since when that is so, and logs what lasts too long.
// Read has no history: it uses the times that are written in Leases.
//
// # Concurrency properties
//
// A Group has a goroutine for the watch, and one that makes the decisions. A membership has one
// that renews, and one for each call of Warm and for a write that is under way. [Group.Wait] waits
// for all of them. No request is sent, no plan is made, and no method of the handler is called,
// under a lock. A process in which the decisions stand still for a minute stops to renew its Lease.
//
// # Memory
//
// A Group keeps the Leases of its group: a map of some kilobytes, and up to three kilobytes per
// member.
//
// # Duties of the caller
//
// If you write a Handler, filter by slots in it. Make all writes under the term. End the process
// when Wait returns [ErrStragglers].
package shard
