// Package controllers compares Tidings' controllers with those of controller-runtime, and with
// client-go's work queue and elector, in programs that show where controllers read stale caches,
// starve keys, scan, or write after their lease.
//
//	apisim ◀──HTTP── program: informer ─▶ queue ─▶ call ─▶ writes
//	                 of Tidings, controller-runtime or client-go
//
// A program is written once, in terms that the stacks share. Each case runs it on each stack and
// measures one figure. The cases of TestCases run in bubbles, in virtual time: their figures do
// not depend on the machine. Those of TestCosts measure time and memory, and need an idle machine.
//
//	go test -v -run TestCases ./controllers
//	go test -v -run TestCosts -timeout 60m ./controllers -size full
//
// Each prints a table, with the target of Tidings as its last column. A case fails if Tidings
// misses a target that the machine does not decide.
//
// TestShards divides units of work among three replicas, with package shard and with knative's
// buckets, in virtual time too. TestTraffic counts the requests of the replicas of one controller.
//
// # Concurrency properties
//
// Cases run one after another. The goroutines of a program end with its case.
//
// # Memory
//
// TestCosts at full size needs about 4 GB.
package controllers
