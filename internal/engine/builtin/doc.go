// Package builtin is the table of the resources that are built into Kubernetes. A [Resource]
// has group, version, plural, kind, scope and whether there is a status subresource; [All],
// [ForGVK] and [ForGVR] read the table.
//
//	client-go's typed clients ──table_test.go──▶ table.go ─┐
//	                                                       ├─▶ All, ForGVK, ForGVR
//	names.go (short names, categories, by hand) ───────────┘
//
// A resource is in the table if client-go has a typed client that lists it: reviews, which are
// only created, and custom resource definitions are not. A version that a later release of
// Kubernetes does not serve any more says so, as its Go type does. A test compares the table
// with the clients, and go generate runs it to write the table.
//
// # Concurrency properties
//
// The tables do not change. Every function may be called from any goroutine; the result
// belongs to the caller.
//
// # Memory
//
// The table has about 150 entries of constant strings. Lookups search it in its order and
// allocate nothing but the copies of short names.
package builtin

//go:generate go test . -run TestTableIsWhatClientsUse -update
