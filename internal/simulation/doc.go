// Package simulation has no code of its own. Its test runs informers of every kind through
// days beside one API server, in virtual time, with all faults of apisim mixed. At every
// audit it compares the server, the caches and the events of the handlers.
//
//	          ┌── world: one seed, one bubble, one day ─────────────────────────┐
//	schedule ─┤  writes ──▶ apisim ──▶ subjects: native, drop-in, … ──▶ checkers │
//	(seed)    │  faults ──▶              start, stop, cut off         join, block │
//	          └──────── log of writes ──── audit ──── caches ──── events ───────┘
//
//	main_test.go       flags, and silence for errors that are expected
//	days_test.go       the seeds: how many, side by side, one again, or until a time is over
//	world_test.go      the day of one seed, its schedule and its history
//	writelog_test.go   the writes, and the adds and deletes that follow for each informer
//	faults_test.go     faults of requests; outages_test.go those of the whole server
//	instances_test.go  several servers, of which some lag, stand still or end
//	usercode_test.go   functions of the user that fail
//	subject_test.go    an informer of any kind; native_test.go and dropin_test.go make them
//	checker_test.go    a handler that follows it (package follow), and the ends of objects
//	audit_test.go      the comparison
//	totals_test.go     the totals of all days
//
// # What is compared
//
//  1. The cache of every informer is the server's state: keys, labels, versions, UIDs.
//  2. The events of each handler add up to the cache, and each event followed from the ones
//     before: no second add, no update or delete of an unknown object, no step back to an
//     older version of an object.
//  3. Each object that a handler knew and that is gone had a delete, or an update to
//     another UID.
//  4. If an informer has not listed since the last audit, its handlers received every add
//     and every delete one by one, also those of objects that came and went.
//
// # How to run it
//
//	go test ./internal/simulation                       # some seeds
//	go test ./internal/simulation -sim.seeds=10000 -timeout 0
//	go test ./internal/simulation -sim.seed=17          # the one that failed
//	make soak SOAK=10m                                  # new seeds until the time is over
//
// A seed that fails prints the end of its history and saves all of it, in the directory
// that go test -artifacts keeps. The schedule depends on the seed alone; the interleaving
// of the goroutines of a moment does not.
//
// # Concurrency properties
//
// Seeds run side by side, each in a bubble of its own. Within one, the schedule is one
// goroutine; the log of writes and the checkers have locks.
//
// # Memory
//
// A world is garbage when its day is over.
package simulation
