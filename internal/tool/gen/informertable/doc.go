// Command informertable writes the generated files of clientgo/informers: a table with
// every resource for which client-go has an informer, and the group accessors of
// its shared informer factory.
//
//	k8s.io/client-go/informers ──▶ groups ─▶ versions ─▶ resources ──▶ zz_generated.resources.go
//	k8s.io/client-go/kubernetes ──────────────────────────┘   └──────▶ zz_generated.groups.go
//
// It works in three steps:
//
//  1. It reflects over the method sets of client-go's SharedInformerFactory: its
//     groups, their versions, and the accessor of each resource.
//  2. It finds the method of the same name in kubernetes.Interface, whose
//     signature shows whether the resource is namespaced, and its Go type.
//     The scheme has the group, version and kind of that type.
//  3. It asks client-go's own ForResource for the resource, so that a name that
//     was derived wrongly ends the run instead of reaching the table.
//
// Run it with go generate in clientgo/informers. Its output depends on nothing but
// the versions of client-go and apimachinery that go.mod names.
//
// # Concurrency properties
//
// The program is one goroutine.
//
// # Memory
//
// The table is held as a whole; it has a few hundred rows.
package main
