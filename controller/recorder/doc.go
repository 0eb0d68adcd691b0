// Package recorder records events: a [Recorder] is an EventRecorder of client-go's tools/events
// that can be closed.
//
//	Eventf ──▶ queue ──▶ events of one reason are a series ──▶ events.k8s.io/v1
//	             ▲
//	             └── Close: an event has one second
//
// # Rules
//
//  1. Eventf does not wait, and returns no error. Events are for people: a program must not
//     depend on them.
//  2. Close waits until each event had one second to be sent, and then drops the remaining
//     events. A program calls it when its controllers have stopped.
//  3. With the Config of a controller.Guard, the guard counts events, and no call waits for them.
//
// Events that client-go's broadcaster cannot send are logged with klog. A program needs the verbs
// create and patch on events of the API group events.k8s.io.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. The broadcaster has three goroutines, and one for
// each event that is being sent. They end with Close, except for a request that does not end with
// its context.
//
// # Memory
//
// Up to 1,000 events are queued; more are dropped. A series is kept until it has had no event for
// six minutes.
package recorder
