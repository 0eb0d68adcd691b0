// Package histogram counts durations. A [Histogram] is written to by the goroutine that has
// measured, and read at any time: its [Durations] are a value.
//
//	         1 µs     2 µs     4 µs            1 s             4096 s
//	zero ──────┼────────┼────────┼── ... ───────┼──── ... ───────┼──────▶
//	 Counts[0]  Counts[1] Counts[2]     Counts[20] Counts[21]      Counts[33]
//
// The bounds are powers of two of a second, those of Prometheus' native histograms of schema 0.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. The sum and the counts of a Durations may differ
// by the observations that were made while it was read.
//
// # Memory
//
// A Histogram takes 280 bytes, whatever it counts.
package histogram
