// Package flight has the flight recorder of informers: a [Recorder] keeps the newest answers and
// events that they read from their servers, and writes them to a file. [Open] reads the file. It
// returns a [Recording], whose tracks source.Replay plays in a test.
//
//	informers ── requests, answers, frames, silences, ends ──▶ Recorder ──Dump──▶ file
//	                                                                               │
//	informer in a test ◀── source.Replay ◀── Recording ◀─────────────────────Open──┘
//
// # The content of a recording
//
//  1. A track for each informer, and for each of its namespaces if it has several.
//  2. A track begins with its base: the identity (key, version and UID) of each object that was
//     cached when the oldest kept record was written, and the whole object where an event of that
//     object follows.
//  3. Its records follow, each with its time: requests for lists and watches with their options,
//     pages with the identities of their objects, events with their frames as they came, errors,
//     and the ends of watches. A silence is the time between two records.
//  4. Objects of a source without frames, such as a ListerWatcher, are encoded when the recording
//     is written, and their records say so.
//  5. Of a Secret, a recording has the identity alone. [Options.Cut] leaves out more.
//
// FORMAT.md describes the format of the file, and docs/recorder.md the costs.
//
// # When a recording is written
//
// When the program calls [Recorder.Dump] or [Recorder.DumpFile]; when a signal arrives, after
// [Recorder.DumpOnSignal]; when the page of package debug is asked for one; and, with
// [Options.Dir], when a handler panics or becomes stuck and when a server's versions went back.
//
// # Concurrency properties
//
// Any number of goroutines may use a Recorder, and any number of factories and informers. The
// records of an informer go when it stops.
//
// The recording of a panic is written on the goroutine of the handler, as the process may end after
// it. Those of stuck handlers and of servers that went back are written on a goroutine of the
// informer, which looks for stuck handlers every 5 seconds. The Run of the informer ends it, and
// waits for the recording that it is writing.
//
// # Memory
//
// [Options.MaxBytes], counted as in package internal/engine/tape, and one frame. While a recording
// is written, its records stay in memory, and informers write to new memory.
package flight
