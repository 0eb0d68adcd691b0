// Package lograte has the [Limiter] of log lines about single objects: a transform that fails for
// every object would write a line for each.
//
// # Concurrency properties
//
// A Limiter may be used by any number of goroutines.
package lograte
