// Package cli is the command line of tidings: [Run] reads it, runs the command, and
// returns the code to exit with.
//
//	Run ─┬─ demo ──▶ demonstration: apisim ◀─ fleet, factory ─▶ view
//	     ├─ watch ─▶ watcher:       cluster ──────── factory ─▶ view
//	     ├─ serve ─▶ service:       apisim ◀─ files
//	     ├─ completion              names: cluster ─ resolve
//	     └─ version, help
//
// # Exit codes
//
// 0 nothing went wrong, also after Ctrl-C; 1 something did, and one line on the error
// stream says what to do, unless it was that the reader of the standard output went
// away; 2 the command line is wrong.
//
// # Concurrency properties
//
// Run starts goroutines of its own only for the churn of a demo, and waits for them.
// The handlers' goroutines belong to the factory, which is shut down before Run
// returns; those of the simulated server to that server, which is closed.
package cli
