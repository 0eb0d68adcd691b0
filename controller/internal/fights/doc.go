// Package fights finds objects that are written again and again (C12): a [Detector] compares the
// states of the objects that calls write, and describes each fight and loop as a [Rewrite].
//
// A fight is an object with fields that calls write, others change, and calls change back. A loop
// is an object with fields that calls change again and again because of their own writes.
//
//  1. The writes of ended calls are counted by object. An object that was written twice within ten
//     minutes is watched, 32 at a time. The events of all other objects are ignored here.
//  2. Of a watched object, each event is compared with the state before. The paths of the fields
//     that differ wait until a call of the key ends.
//  3. Then it is known which states are writes of calls. A state that came before the call and was
//     written by no call is a change of others.
//  4. A field that others changed five times after a call makes a fight. A field that ten calls in
//     a row changed because of own writes makes a loop. Either is over after ten minutes without a
//     change.
//  5. An object that calls have written four times without a sign of either is no longer watched.
//
// # Concurrency properties
//
// One mutex guards a Detector. An event of an object that is not watched takes no lock.
//
// # Memory
//
// The counts of 1,024 objects, and for each of 32 objects 64 fields and 32 states.
package fights
