// Package replicas runs replicas of the calling program for a demonstration: a [Process] is one of
// them, and a [Group] prints how the slots of package shard move among them.
//
//	parent                                        child
//	Start ── arguments, a pipe as its input ────▶ UntilEOF
//	      ◀─ one line with an address ─────────── Announce
//	Group ── GET /, /group, each second ────────▶ pages of package debug
//
// # Ends
//
// A child ends with its standard input, which is a pipe of the parent: also when the parent is
// killed. [Group.End] ends one child after the other, so that each hands its slots over.
//
// # Concurrency properties
//
// A Group is for one goroutine. A Process has a goroutine that waits for its end.
package replicas
