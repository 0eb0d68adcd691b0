// Command bench runs the same work through client-go, through Tidings and through
// Tidings' drop-in for client-go, each in processes of their own, and prints what it cost
// as a table in Markdown. README.md says how to run it and what it measures.
//
//	bench ──▶ report.Runner ──▶ worker processes ──▶ a stack, a workload, metrics
//	               └──────────▶ server processes ──▶ encoded objects
//
// # Concurrency properties
//
// One worker runs at a time, beside the server that it reads from.
//
// # Memory
//
// With 200,000 pods client-go needs about 6 GB and the server 1 GB. A workload that
// grows without bound ends at its heap limit.
package main
