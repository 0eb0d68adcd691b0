// Package measure reads what a process has cost so far: [Now] returns a [Usage], and
// [Heap], [Resident] and [Peak] its memory.
//
// CPU is user and system time of the whole process from getrusage, so that the garbage
// collector and every goroutine are in it. Peak memory is VmHWM, the largest resident set
// that the kernel has seen; [ResetPeak] makes it begin anew.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. The figures are those of the process:
// whoever calls makes sure that nothing else runs.
//
// # Memory
//
// Nothing is held.
package measure
