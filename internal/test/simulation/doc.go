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
//	slots_test.go      slots and namespaces that come and go
//	usercode_test.go   functions of the user that fail, and transforms
//	subject_test.go    an informer of any kind; native_test.go and dropin_test.go make them
//	kinds_test.go      the kinds of a world
//	checker_test.go    a handler that follows it (package follow), and the ends of objects
//	audit_test.go      the comparison
//	totals_test.go     the totals of all days
//
// # Dimensions
//
// Four suites ask what happens to an informer, each in its own way. A new fault, kind of informer
// or option is a row or a dimension of those of them that can have it. The others are package
// tidingstest, the tables of faults of package contract (contract/faults_*_test.go), and its random
// lives (contract/lives_*_test.go).
//
//	dimension                        simulation   tidingstest   faults      lives
//	typed, dynamic, metadata         yes          yes           yes         yes
//	drop-ins                         yes          yes           some rows   –
//	several namespaces               yes          yes           some rows   yes
//	namespaces that come and go      yes          –             –           yes
//	slots by UID                     yes          –             yes         yes
//	slots by namespace               yes          –             –           –
//	slots that come and go           yes          –             some rows   yes
//	shard selectors, ignored by some yes          –             –           –
//	transforms that fail for a while yes          –             –           –
//	  … for some states              yes          –             –           –
//	  … that remove the version      yes          –             –           –
//	  … that take their time         –            –             –           yes
//	an optional resource             yes          –             yes         –
//	a recorder                       yes          –             –           –
//	Secrets                          yes          –             –           –
//	lists that are old               yes          yes           yes         –
//	one namespace refused            yes          yes           yes         –
//	users with some rights           yes          –             yes         –
//	a definition of another scope    yes          –             –           –
//	a restored backup                yes          yes           yes         –
//	  … within seconds, outgrown     yes          –             yes         –
//	several servers                  yes          –             –           –
//	terms, stops, releases           restarts     stops         –           yes
//
// The scope of a definition changes in TestP01_DefinitionComesBackWithAnotherScope of package contract too.
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
//     and every delete one by one, also those of objects that came and went. Its slots and
//     namespaces must be those of the last audit.
//  5. A delete is marked as moved if the slot of the object was removed, and only then.
//  6. No content of an object is logged, in the health of an informer, or, if it is a Secret, in a
//     recording (package secrets).
//  7. Every Add of slots has returned. If it did so at once, the caches held the objects then.
//
// # How to run it
//
//	go test ./internal/test/simulation                       # some seeds
//	go test ./internal/test/simulation -sim.seeds=10000 -timeout 0
//	go test ./internal/test/simulation -sim.seed=17          # the one that failed
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
