// Package secrets has no code of its own. Its test plants a bearer token and the content of
// Secrets, sends informers faulty answers of many kinds, among them Secrets with one malformed
// field, and searches the output for the planted texts: logs of the highest level, errors,
// health, metrics. docs/security.md has the guarantee.
//
// # Concurrency properties
//
// The test sets global variables of the process: klog's output and client-go's metrics.
//
// # Memory
//
// The output is kept until the test ends.
package secrets
