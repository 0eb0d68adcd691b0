// Package health has the values in which informers describe themselves: [Informer], which
// has one [Watch] per namespace and one [Handler] per registered handler.
//
//	Informer ─┬─ Watch     the state that is furthest from Watching, and sums of the counters
//	          ├─ Namespaces ── Watch, ...   if the informer has several
//	          └─ Handlers ──── Handler, ...
//
// json.Marshal of each gives a stable form, which docs/operate.md describes.
//
// Package tidings has the same types as Health, State, HandlerHealth and HandlerState.
//
// # Concurrency properties
//
// A value does not change after it was returned. Its maps and slices belong to the caller;
// errors are shared and read-only.
package health
