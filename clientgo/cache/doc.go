// Package cache is client-go's tools/cache with Tidings' engine behind its informers. It exports
// every name that client-go exports there, [SharedIndexInformer], [Indexer], [ListWatch] and
// [ResourceEventHandlerFuncs] among them, as the same type, value or function. A program changes
// the import path only:
//
//	"k8s.io/client-go/tools/cache"  ──▶  "github.com/tidings-go/tidings/clientgo/cache"
//
// Both may be imported side by side: client-go, its listers and libraries accept these informers.
//
//	a program ──▶ this package
//	                ├─ informer.go, controller.go ──▶ informers on Tidings' engine
//	                ├─ lists.go, indexers.go      ──▶ lists of their caches, by their indexes
//	                └─ zz_generated.forwards.go   ──▶ client-go's tools/cache: everything else
//
// # Names that use the engine
//
//   - [NewSharedIndexInformer], [NewSharedIndexInformerWithOptions] and [NewSharedInformer];
//   - [NewInformerWithOptions], [NewInformer], [NewIndexerInformer], [NewTransformingInformer] and
//     [NewTransformingIndexerInformer];
//   - [ListAll], [ListAllByNamespace] and [NewGenericLister] use the indexes of its caches.
//
// client-go does not have [HealthOf], which returns the health of an informer, nor [IndexLabels],
// [IndexOwners], [Select], [Owned] and [Controlled], which add indexes and find objects by them,
// nor [WithSharing] and [WithRecorder]. All other names are client-go's own code, also a
// [Reflector], a [DeltaFIFO], a [Store] and a controller of [New] that a program makes itself.
// Packages such as tools/cache/testing stay client-go's.
//
// # How the names are forwarded
//
//  1. Types are aliases, so values pass between both packages without a conversion.
//  2. Constants and errors are the same values.
//  3. Functions call client-go's. Five functions name a reflector or a log line by their caller.
//     These are variables, so that no function is in between. Do not assign to them.
//  4. Deprecated names of client-go are deprecated here.
//
// go generate writes the forwards from the client-go of go.mod. A test fails if a name is missing.
//
// # Concurrency properties
//
// Those that client-go documents for each name. A forward adds no state, no goroutine and no lock.
//
// # Memory
//
// A forward costs nothing: the compiler inlines the functions.
//
// # What a caller must do
//
// Change the import path. docs/migrate.md lists the things to check, docs/differences.md every
// intended difference in behaviour, with its reason.
package cache
