// Package metadatainformer is client-go's metadata/metadatainformer with Tidings' informers:
// [NewSharedInformerFactory], [NewFilteredSharedInformerFactory] and
// [NewSharedInformerFactoryWithOptions] return client-go's own SharedInformerFactory,
// [NewFilteredMetadataInformer] its GenericInformer, so that a program moves by changing the
// import path. docs/differences.md of this module lists the intended differences.
//
//	NewClient(config, nil) ──────────▶ *Client ──┬─ delete, patch, get ─▶ the metadata client
//	                                             └─ list and watch ─────▶ Tidings' own source
//	metadata.NewForConfig, fakes, … ─▶ any other ── all requests ───────▶ that client
//
// # Reading
//
// With a [Client] informers read with Tidings' own source, as those of tidings.Metadata do,
// which saves memory and time. With any other client they receive decoded objects, which can
// only share parts afterwards. Handlers and listers see equal objects. docs/memory.md has the
// figures.
//
// # Concurrency properties
//
// As in client-go: factories and informers may be used from any goroutine.
//
// # Memory
//
// The cached objects of a factory share equal parts. Change none without a DeepCopy.
// [WithSharing] limits it, [WithSharingAmong] extends it to several factories, [WithDrop] and
// [WithDropFor] leave out fields. With [WithoutServerDrop] the server sends managed fields all the
// same.
package metadatainformer
