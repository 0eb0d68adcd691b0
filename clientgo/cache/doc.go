// Package cache is client-go's tools/cache with Tidings' engine behind its informers: every name that is exported
// there is exported here, [SharedIndexInformer], [Indexer], [ListWatch] and [ResourceEventHandlerFuncs] among them, and
// is the same type, value or function. So the import path is all that changes in a program:
//
//	"k8s.io/client-go/tools/cache"  ──▶  "github.com/tidings-go/tidings/clientgo/cache"
//
// Both may be imported side by side: an informer from here goes wherever client-go, its listers, or a library that was
// written for it takes one.
//
//	a program ──▶ this package
//	                ├─ informer.go, controller.go ──▶ informers on Tidings' engine, as client-go's interfaces
//	                ├─ lists.go, indexers.go      ──▶ lists of the engine's caches, by their indexes
//	                └─ zz_generated.forwards.go   ──▶ client-go's tools/cache: everything else, itself
//
// # What has the engine behind it
//
//   - [NewSharedIndexInformer], [NewSharedIndexInformerWithOptions] and [NewSharedInformer];
//   - [NewInformerWithOptions], and the older [NewInformer], [NewIndexerInformer], [NewTransformingInformer] and
//     [NewTransformingIndexerInformer];
//   - [New], where the engine lists and watches; queue and Process function are those of the [Config];
//   - [ListAll], [ListAllByNamespace] and [NewGenericLister], which ask the engine's caches for what a selector matches.
//
// Names that client-go does not have: [HealthOf] says how such an informer is; [IndexLabels] and [IndexOwners] are
// indexes, by which [Select], [Owned] and [Controlled] find objects.
//
// Everything else is client-go's own and behaves as it does there, also a [Reflector], a [DeltaFIFO] or a [Store] that a
// program makes itself. The packages below client-go's, such as tools/cache/testing, stay where they are.
//
// # How the names are forwarded
//
//  1. Types are aliases, so values pass between both packages without a conversion, and type switches agree.
//  2. Constants and errors are the same values.
//  3. Functions call their namesakes. Five look at their caller, to name a reflector or a log line by it; a function in
//     between would be what they find, so they are variables. Nobody should assign to them.
//  4. What client-go deprecates is deprecated here.
//
// go generate writes the forwards from the client-go of go.mod, and a test fails when a name is missing.
//
// # Concurrency properties
//
// As client-go documents them for each name: a forward adds no state, no goroutine and no lock.
//
// # Memory
//
// A forward costs nothing: the compiler inlines the functions.
//
// # What a caller must do
//
// Change the import path. docs/migrate.md says what to look at when doing so, docs/differences.md lists every intended
// difference in behaviour, with its reason and, where there is one, the way back.
package cache
