// Package fleet builds the objects of a made-up cluster and changes them as a busy
// cluster would: a [Fleet] holds the model, a [Cluster] is where its objects live, a
// [Change] reports each write, a [Pace] spreads the writes over time.
//
//	seed ─▶ New ─▶ Populate ─▶ Cluster ◀─ Step, Step, Step … (Run: so many a second)
//	                                             │
//	                                             └─▶ Options.Made(Change)
//	others' writes ─▶ Hear ─▶ Answer: the model, and what controllers would do
//
// # How it changes
//
//  1. New decides names, sizes and specs with a generator of random numbers that the
//     seed alone starts: the same seed gives the same objects.
//  2. Every Step makes exactly one write, as long as nobody else writes. It takes the
//     next step of one of the stories that are under way, or begins a new one.
//  3. A story is what a controller, a user or a kubelet does to one application:
//     rolling out an image, scaling, a container that crashes and comes back, an
//     evicted pod that is replaced, a configuration that changes. Heartbeats of nodes
//     come in between.
//  4. An application is in one story at a time, so that stories never contradict each
//     other; several applications are in theirs at once, so that they interleave.
//  5. An application has, in one case of three, an object of the custom type [Database],
//     whose definition the fleet creates first.
//
// # What others do
//
//  1. An update that meets the write of somebody else is made again, to what that left.
//  2. An application to which somebody has done something, by what [Fleet.Hear] was told
//     or by an error of a write, is inspected: its story is dropped, its model becomes
//     what the cluster holds, and a new story does what controllers would do about it:
//     it replaces pods, finishes their deletion as a kubelet does, carries out another
//     size or image, collects what a deleted deployment has left. A deployment that
//     somebody creates becomes an application. Such stories come first.
//  3. Whose size or image somebody has set is not scaled or rolled out any more.
//  4. Nodes that are deleted register again. Other objects are forgotten.
//
// # Concurrency properties
//
// A Fleet belongs to one goroutine, but for Hear. It starts none.
//
// # Memory
//
// The model keeps every object once, as the cluster returned it.
package fleet
