// Package simulation has no code of its own. Its test lets informers of every kind live
// through whole days beside one API server, in virtual time, with all faults that apisim
// knows mixed, and compares at every quiet hour what the server, the caches and the
// handlers hold.
//
//	          ┌── world: one seed, one bubble, one day ──────────────────────────┐
//	schedule ─┤  writes ──▶ apisim ──▶ subjects: native, drop-in, … ──▶ witnesses │
//	(seed)    │  faults ──▶              start, stop, cut off         join, block │
//	          └──────── ledger of writes ─── audit ── caches ── what they were told ─┘
//
//	main_test.go       flags, and the handlers of errors that informers report to
//	days_test.go       the seeds: how many, side by side, one again, or until a time is over
//	world_test.go      the day of one seed, its schedule and its history
//	ledger_test.go     what was written, and what each informer has to be told of it
//	faults_test.go     faults of requests; outages_test.go those of the whole server
//	subject_test.go    an informer of any kind; native_test.go and dropin_test.go make them
//	witness_test.go    a handler that checks that each event follows from those before
//	audit_test.go      the comparison
//	tally_test.go      what was run, for the record
//
// # What is compared
//
//  1. The cache of every informer is the server's state: keys, labels, versions, UIDs.
//  2. What each handler was told adds up to the cache, and each event followed from the
//     ones before: no second add, no update or delete of what it did not know, no step
//     back to an older version of an object.
//  3. No object that a handler was told of is gone without its having been told.
//  4. If an informer has not listed since the last quiet hour, its handlers were told of
//     every add and every delete one by one, those of objects that came and went included.
//
// # How to run it
//
//	go test ./internal/simulation                       # some seeds
//	go test ./internal/simulation -sim.seeds=10000 -timeout 0
//	go test ./internal/simulation -sim.seed=17          # the one that failed
//	make soak SOAK=10m                                  # new seeds until the time is over
//
// A seed that fails prints the end of its history and saves all of it, in the directory
// that go test -artifacts keeps. The schedule comes from the seed alone; how the
// goroutines of a moment interleave does not.
//
// # Concurrency properties
//
// Seeds run side by side, each in a bubble of its own. Within one, the schedule is one
// goroutine; the ledger and the witnesses have locks.
//
// # Memory
//
// A world is garbage when its day is over.
package simulation
