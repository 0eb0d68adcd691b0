// Package secrets has the texts that tests plant into tokens and into the content of objects, and
// Output, which searches for them what a test writes and shows: logs of the highest level, errors,
// health, pages, metrics and recordings. SECURITY.md has the guarantee.
//
// The suites that plant them are the table of faults of package contract and the simulation, whose
// objects all have them. The test of this package adds what these have not: informers of Secrets
// under answers that are Secrets with one malformed field, client-go's logs and metrics, and pages.
//
// # Concurrency properties
//
// An Output may be written to from any goroutine. The test of this package sets global variables
// of the process: klog's output and client-go's metrics.
//
// # Memory
//
// An Output keeps ten findings at most.
package secrets
