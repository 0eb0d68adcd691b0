// Package metadatainformer is client-go's metadata/metadatainformer with Tidings'
// informers: [NewSharedInformerFactory], [NewFilteredSharedInformerFactory] and
// [NewSharedInformerFactoryWithOptions] return client-go's own SharedInformerFactory,
// [NewFilteredMetadataInformer] its GenericInformer, so that a program moves by changing
// the import path. It reads through the metadata client that it is given.
// docs/differences.md of this module lists what differs on purpose.
//
// # Concurrency properties
//
// As in client-go: factories and informers may be used from any goroutine.
package metadatainformer
