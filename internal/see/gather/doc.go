// Package gather reads health: [Sources] are the factories, informers, managers, controllers and
// groups that a program shows, and [Sources.Read] returns the [Figures] of all at one time.
// Packages metrics and debug show them.
//
// # Concurrency properties
//
// The methods of Sources may be called from any goroutine.
//
// # Memory
//
// Sources keeps what it was given until Remove.
package gather
