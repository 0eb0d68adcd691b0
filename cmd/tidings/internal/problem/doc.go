// Package problem turns errors into one line that says what to do, and into the
// code that the command exits with: a [Target] names the cluster that was spoken to
// and explains what it answered, a [UsageError] is a command line that cannot be.
//
//	error ─▶ Target.Explain ─▶ "the server … does not accept …: log in again …"
//	error ─▶ Code ─▶ 0 nothing went wrong, 1 something did, 2 the command line is wrong
//
// # Concurrency properties
//
// Everything here is a value.
package problem
