// Package bench compares client-go, Tidings and Tidings' drop-in for client-go in time and
// memory, with Go benchmarks, which benchstat summarises. README.md describes them and the
// commands to run them.
//
//	test binary ──▶ worker: the same binary, for one benchmark on one stack
//	     └── serves encoded objects ──HTTP──▶ worker's informer
//
// Each benchmark runs in a process of its own, so that its CPU time, its heap and its peak of
// memory are those of one informer.
//
// # Concurrency properties
//
// One worker runs at a time, beside the server that it reads from.
//
// # Memory
//
// With 200,000 pods client-go needs about 6 GB and the server 1 GB. A benchmark whose heap
// grows without bound ends at its limit.
package bench
