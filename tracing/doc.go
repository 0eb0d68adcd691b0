// Package tracing has a [Tracer], which makes OpenTelemetry spans of the lists and watches of
// informers and of the calls of controllers.
//
//	informers   ── list, watch ──▶ Tracer ──▶ trace.TracerProvider of the program
//	controllers ── reconcile  ──▶
//
// It imports the API of OpenTelemetry alone. Programs that do not import this package do not
// compile that API. docs/operate.md lists the spans and their attributes.
//
// # Concurrency properties
//
// Any number of goroutines may use a Tracer, and any number of factories and controllers.
//
// # Memory
//
// A Tracer keeps nothing. Spans that run are kept by the provider.
package tracing
