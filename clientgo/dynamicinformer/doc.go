// Package dynamicinformer is client-go's dynamic/dynamicinformer with Tidings' informers:
// [NewDynamicSharedInformerFactory] and [NewFilteredDynamicSharedInformerFactory] return
// client-go's own DynamicSharedInformerFactory, [NewFilteredDynamicInformer] its
// GenericInformer, so that a program moves by changing the import path.
// docs/differences.md of this module lists the intended differences.
//
//	NewClient(config, nil) ─────────▶ *Client ──┬─ create, update, … ─▶ the dynamic client
//	                                            └─ list and watch ────▶ Tidings' own source
//	dynamic.NewForConfig, fakes, … ─▶ any other ── all requests ──────▶ that client
//
// # Reading
//
// With a [Client] informers read with Tidings' own source, as those of tidings.Dynamic do,
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
package dynamicinformer
