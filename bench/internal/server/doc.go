// Package server serves the objects of a benchmark over HTTP: [Encode] makes the [Encoded]
// objects of a [Spec], and [Handler] an http.Handler that answers lists and watches by writing
// bytes that are encoded already, so that it costs next to nothing beside a client.
//
//	GET path?watch&sendInitialEvents ──▶ frames of all objects, a bookmark, then silence
//	GET path?watch                   ──▶ silence
//	GET path?limit&continue          ──▶ a page
//	POST /updates                    ──▶ all watches send their updates
//	POST /relist                     ──▶ ends all watches with 410 Gone; the next lists differ
//
// # The list after a relist
//
// Of every hundred objects the first is gone, the second has a new version, and as many
// as are gone are new. [After] counts them.
//
// # Concurrency properties
//
// A handler may be called from any goroutine. Several handlers may serve the same objects.
//
// # Memory
//
// The encoded objects, once: as frames or as items of lists, in protobuf or in JSON. With
// [Spec.Relist], twice.
//
// # What a caller must do
//
// Run it in another process than the informer, or its cost is measured too.
package server
