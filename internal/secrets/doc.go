// Package secrets has no code of its own. Its test plants a bearer token and the content
// of Secrets, lets informers of every kind meet answers of every kind, also with a Secret in each field that is malformed, with the highest
// level of logs, and looks for what it planted in all that is printed: logs, errors,
// health, metrics. docs/security.md says what is promised.
//
// # Concurrency properties
//
// The test sets what is global to the process: klog's output and client-go's metrics.
//
// # Memory
//
// All that is printed is kept until the test ends.
package secrets
