// Command guard compares the allocations of Tidings' key benchmarks with recorded ones, and fails
// where allocations or bytes per operation have grown to more than 110 %. It ignores times:
// they differ between machines.
//
//	go test -bench ──▶ allocs/op, B/op ──▶ compared with recorded.txt
//
// Each benchmark runs a fixed number of times, thrice. The most of the three is recorded,
// and the least of the three is compared with it, because allocations by goroutines depend
// on how they meet. 16 bytes per operation more are allowed, because something that is
// allocated once is spread over a run.
//
// With -update it records the figures instead. recorded.txt is in the format of Go's
// benchmarks, without times: benchstat reads it.
//
// # Concurrency properties
//
// Packages are measured one after another.
//
// # Memory
//
// The results.
package main
