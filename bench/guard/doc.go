// Command guard compares what the key benchmarks of Tidings allocate with what was
// recorded, and fails where allocations or bytes per operation have grown to more than
// 110 %. Times are not looked at: they differ between machines.
//
//	go test -bench ──▶ allocs/op, B/op ──▶ compared with recorded.txt
//
// Each benchmark runs a fixed number of times, thrice. The most of the three is recorded,
// and the least of the three is compared with it, for what goroutines allocate depends on
// how they meet. 16 bytes per operation more are let pass, for what is allocated once is
// spread over a run.
//
// With -update it records what it measures instead. recorded.txt is in the format of Go's
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
