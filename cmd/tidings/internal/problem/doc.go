// Package problem turns errors into one line with the remedy, and into an exit code: a [Target]
// explains the errors of a cluster, [Usage] makes an error of the command line.
//
//	error ─▶ Target.Explain ─▶ "the server … does not accept …: log in again …"
//	error ─▶ Code ─▶ 0 success, 1 failure, 2 wrong command line
//
// # Concurrency properties
//
// Everything here is a value.
package problem
