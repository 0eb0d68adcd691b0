// Package fleet builds the objects of a made-up cluster and changes them as a busy
// cluster would: a [Fleet] holds the model, a [Cluster] is where its objects live, a
// [Change] reports each write, a [Pace] spreads the writes over time.
//
//	seed ─▶ New ─▶ Populate ─▶ Cluster ◀─ Step, Step, Step … (Run: so many a second)
//	                                             │
//	                                             └─▶ Options.Made(Change)
//
// # How it changes
//
//  1. New decides names, sizes and specs with a generator of random numbers that the
//     seed alone starts: the same seed gives the same objects.
//  2. Every Step makes exactly one write. It takes the next step of one of the stories
//     that are under way, or begins a new one.
//  3. A story is what a controller, a user or a kubelet does to one application:
//     rolling out an image, scaling, a container that crashes and comes back, an
//     evicted pod that is replaced, a configuration that changes. Heartbeats of nodes
//     come in between.
//  4. An application is in one story at a time, so that stories never contradict each
//     other; several applications are in theirs at once, so that they interleave.
//
// # Concurrency properties
//
// A Fleet belongs to one goroutine. It starts none.
//
// # Memory
//
// The model keeps every object once, as the cluster returned it.
package fleet
