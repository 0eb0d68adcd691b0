// Package builtin is the table of the resources that are built into Kubernetes. A [Resource]
// has group, version, plural, kind, scope and whether there is a status subresource, as
// k8s.io/api declares them; [All], [ForGVK] and [ForGVR] read the table.
//
//	k8s.io/api types.go ──generate.go──▶ table.go ─┐
//	                                               ├─▶ All, ForGVK, ForGVR
//	names.go (short names, categories, by hand) ───┘
//
// # How the table is made
//
//  1. go generate runs generate.go, which finds the sources of k8s.io/api at the version of
//     go.mod.
//  2. A type with the comment +genclient is a resource. Types that can only be created
//     (reviews) or that have no verbs of their own (evictions) are left out: they cannot be
//     listed or watched.
//  3. Scope and status come from the type's other comments and fields, the release that
//     removed the version from its generated APILifecycleRemoved, if that release is not
//     later than that of k8s.io/api.
//  4. The plural is the lower-cased kind with the endings of English; endpoints are plural
//     already.
//
// The tests compare the table with the resources of client-go's typed clients.
//
// Custom resource definitions are not in the table: their types are not part of k8s.io/api.
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

//go:generate go run generate.go
