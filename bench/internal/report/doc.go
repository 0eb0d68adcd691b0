// Package report runs workloads in processes of their own and writes what they measured
// as a table: a [Runner] yields a [Report], which [Report.Markdown] writes.
//
//	Runner ──▶ server process   (one per way of serving, kept while cases ask for it)
//	   │           ▲ HTTP
//	   └─────▶ worker process   (one per run: case × stack), metrics on its stdout
//
// # The order of runs
//
// For each case, stacks take turns, and each round begins with the next one: whatever
// slows the machine down for a while meets all of them.
//
// # The figures
//
// The median of the runs, and the range that they lie in. A ratio is that of two medians,
// so that more than 1 is always better: client-go's cost over the stack's, or the stack's
// rate over client-go's. It is marked where the runs do not tell the two apart
// (Mann-Whitney U test at 5 %, of golang.org/x/perf/benchmath).
//
// # Concurrency properties
//
// One worker runs at a time.
//
// # Memory
//
// The figures of all runs.
package report
