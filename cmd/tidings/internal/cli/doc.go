// Package cli is the command line of tidings: [Run] parses it, runs the command, and returns the
// exit code.
//
//	Run ─┬─ demo ──▶ demonstration: apisim ◀─ fleet, informers ─▶ printer
//	     │           └─ --replicas: replicas.Group ─▶ screen
//	     ├─ replica ▶ a part of the fleet's controllers, started by demo
//	     ├─ watch ─▶ watcher:       clusters ─────── informers ─▶ printer
//	     ├─ record ▶ watcher:       clusters ─────── informers ─▶ flight.Recorder
//	     ├─ replay ▶ replay:        a recording ──── informers ─▶ screen
//	     ├─ serve ─▶ apisim ◀─ files, a command
//	     ├─ top ───▶ top.Client ◀─ pages of debug, at an address or of a pod
//	     ├─ shards ─▶ shard.Read ◀─ the Leases of a group
//	     └─ completion, version, help
//
// # Exit codes
//
// 0: success, also after Ctrl-C, and when the reader of the standard output has closed it. 1: a
// failure; one line on the error stream describes it and the remedy. 2: the command line is wrong.
// `tidings serve` returns the exit status of the command that it runs.
//
// # Concurrency properties
//
// Run waits for the goroutines that it starts: those that ask clusters for their types, those that
// make the changes and the faults of a demo, those that serve pages, and the one that waits for the
// command of serve. It also waits for the replicas of a demo, which are processes. There are two
// exceptions. The goroutine that reads the standard input ends with the input, and that of a
// forwarded port with the context. The factory owns the goroutines of the handlers, and the
// simulated server has its own; Run closes both before it returns.
package cli
