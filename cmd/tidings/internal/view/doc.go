// Package view shows what happens to the objects of a cluster: a [Change] is one
// event of an informer of any type, a [Lines] renders changes a line each, a
// [Documents] as names, JSON or YAML, a [Screen] puts them above a status line, a
// [Tally] counts them, a [Latency] and a [Ledger] say how long they took, a [Secrecy]
// keeps the data of Secrets out of all of it.
//
//	informer ─▶ Handler ─▶ Change ─┬─▶ Secrecy ─▶ Lines or Documents ─▶ Screen ─▶ stdout
//	                               ├─▶ Tally ──▶ Status, Summary ─────▶    │    ─▶ stderr
//	                               └─▶ Ledger ─▶ Latency               status line
//
// # A line
//
//  1. time, sign (+ added, ~ updated, - deleted, nothing for the initial set), type,
//     namespace/name, then what there is to say.
//  2. For an update: the paths of the fields that differ, old → new, those that every
//     write changes left out, as many as fit. Values are shortened.
//  3. For an add or a delete: what one wants to know of such an object (the phase and
//     node of a pod, the replicas of a deployment) and its age.
//  4. Control characters never reach the terminal: in lines a dot stands for them, in
//     documents they are escaped.
//
// # The screen
//
// On a terminal the last line is a status line, which is erased before anything is
// printed and drawn again below it; what was printed stays in the terminal's history.
// Elsewhere there is none, and no colour.
//
// # Concurrency properties
//
// Screen, Tally and Ledger may be used from any goroutine. Lines and Documents are
// for one goroutine at a time. Nothing here starts a goroutine.
//
// # Memory
//
// Nothing here keeps an object; a Ledger keeps a number for each change that was made
// and has not been seen, up to a bound.
package view
