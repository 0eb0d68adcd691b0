// Package server serves the objects of a benchmark over HTTP: [New] encodes them all, and
// the [Server] that it returns is an http.Handler that answers lists and watches by
// writing what is encoded already, so that it costs next to nothing beside a client.
//
//	GET path?watch&sendInitialEvents ──▶ frames of all objects, a bookmark, then silence
//	GET path?watch                   ──▶ silence
//	GET path?limit&continue          ──▶ a page
//	POST /relist                     ──▶ ends the watches with 410 Gone; the next list differs
//	POST /reset                      ──▶ the first list again
//
// # The list after a relist
//
// Of every hundred objects the first is gone, the second has a new version, and as many
// as are gone are new. [After] counts them.
//
// # Concurrency properties
//
// A Server may be called from any goroutine.
//
// # Memory
//
// The encoded objects, once: as frames or as items of lists, in protobuf or in JSON, as
// [Spec] says. With [Spec.Relist], twice.
//
// # What a caller must do
//
// Run it in a process of its own, or it is a part of what is measured.
package server
