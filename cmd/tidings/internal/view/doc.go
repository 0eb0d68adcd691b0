// Package view shows changes of the objects of a cluster. A [Change] is one event of an informer of
// any type. A [Lines] renders each change as a line, a [Documents] as a name, JSON or YAML. A
// [Screen] prints them above a status line. A [Tally] counts them, a [Lag] measures the time from a
// write to its event, and a [Secrecy] hides the data of Secrets.
//
//	informer ─▶ Handler ─▶ Change ─┬─▶ Secrecy ─▶ Lines or Documents ─▶ Screen ─▶ stdout
//	                               ├─▶ Tally ──▶ Table, status line ──▶    │    ─▶ stderr
//	                               └─▶ Lag
//
// # A line
//
//  1. Time, sign (+ added, ~ updated, - deleted, nothing for the initial list), type,
//     namespace/name, details.
//  2. The details of an update are the paths of the fields that differ, old → new, as many as fit.
//     Fields that every write changes are left out. Values are shortened. On a narrow screen the
//     beginning of a path is left out first.
//  3. The details of other changes are the state of the object (the phase and the node of a pod,
//     the replicas of a deployment) and its age.
//  4. Control characters never reach the terminal: lines have a dot instead, documents escape
//     them.
//
// # The screen
//
// On a terminal the last line is a status line. It is erased before something is printed and
// drawn again below it. Other outputs have no status line and no colours.
//
// # Concurrency properties
//
// Screen, Tally and Lag may be used from any goroutine. Lines and Documents are for one goroutine at
// a time.
//
// # Memory
//
// Nothing here keeps an object. A Lag keeps a time for each change that was written and not seen,
// or seen and not written, up to a bound.
package view
