// Package dynamicinformer is client-go's dynamic/dynamicinformer with Tidings' informers:
// [NewDynamicSharedInformerFactory] and [NewFilteredDynamicSharedInformerFactory] return
// client-go's own DynamicSharedInformerFactory, [NewFilteredDynamicInformer] its
// GenericInformer, so that a program moves by changing the import path. It reads through
// the dynamic client that it is given. docs/differences.md of this module lists what
// differs on purpose.
//
// # Concurrency properties
//
// As in client-go: factories and informers may be used from any goroutine.
package dynamicinformer
