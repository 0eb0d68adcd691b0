// Package metadatainformer is client-go's metadata/metadatainformer with Tidings'
// informers: [NewSharedInformerFactory], [NewFilteredSharedInformerFactory] and
// [NewSharedInformerFactoryWithOptions] return client-go's own SharedInformerFactory,
// [NewFilteredMetadataInformer] its GenericInformer, so that a program moves by changing
// the import path. docs/differences.md of this module lists what differs on purpose.
//
//	NewClient(config, nil) ──────────▶ *Client ──┬─ delete, patch, get ─▶ the metadata client
//	                                             └─ list and watch ─────▶ Tidings' own source
//	metadata.NewForConfig, fakes, … ─▶ any other ── everything ─────────▶ that client
//
// # Reading
//
// A [Client] in the place of the metadata client is what makes the difference in memory and
// time: informers then read with Tidings' own source, as those of tidings.Metadata do.
// Through any other client they get objects that it has decoded, which can only be made to
// share afterwards. What handlers and listers see is equal. docs/memory.md has the figures.
//
// # Concurrency properties
//
// As in client-go: factories and informers may be used from any goroutine.
//
// # Memory
//
// The cached objects of a factory have in common what is equal. Change none without a
// DeepCopy. [WithSharing] limits it, [WithSharingAmong] has several factories share,
// [WithDrop] and [WithDropFor] leave out fields that nobody reads.
package metadatainformer
