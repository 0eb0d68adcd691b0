// Package bench compares the queue with client-go's workqueue and with controller-runtime's
// priority queue, in time and memory. It is a module of its own, as Tidings does not require
// controller-runtime, and stands here because the queue is internal.
//
//	go test -bench AddGetDone -benchmem
//	go test -bench Memory -benchtime 1x
//
// # Concurrency properties
//
// A benchmark waits for its workers. Goroutines of the other queues may end after that.
//
// # Memory
//
// BenchmarkMemory needs about 1 GB for 1,000,000 keys.
package bench
