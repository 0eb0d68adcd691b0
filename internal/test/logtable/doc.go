// Package logtable has [Lines], which compares the lines that a test has led to with a table of
// docs/logs.md. Only tests use it.
//
// # Concurrency properties
//
// The handler of Lines may be used by any number of goroutines. Compare is called when they have
// ended.
package logtable
