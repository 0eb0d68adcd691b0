// Package informers has the constructors and options of k8s.io/client-go/informers
// under their names, so that a program moves by changing that import. A
// SharedInformerFactory shares Tidings' informers among all who ask for the same
// type; NewFor makes one that is not shared, ForGroup puts custom resources on a
// factory.
//
//	factory.Core(), Apps(), …            client-go's generated groups
//	        │  .V1().Pods().Informer()
//	        ▼
//	builtin, the groups' private factory ─▶ table of resources ─▶ Tidings' informer ─┐
//	factory.ForResource(gvr) ────────────────────┘                                   ▼
//	factory.InformerFor(obj, newFunc) ────────────▶ what newFunc returns ──▶ informers by Go type
//	ForGroup(factory, …) ─────────────────────────▶ a custom resource's ─────────────▲
//
// # How an informer is made
//
//  1. The factory looks for one of the same Go type. Whoever asks first decides what
//     it is; everyone after that gets the same.
//  2. InformerFor runs its caller's function, as in client-go: it may select by
//     fields, as kube-scheduler's for pods does, and no one can tell from outside.
//  3. A group accessor and ForResource take the row of the resource from the generated
//     table. With a *kubernetes.Clientset the informer reads through its REST client,
//     with Tidings' source and decoder. Any other client, such as a fake, is read
//     through its own typed methods.
//  4. The factory's transform is set on it. It runs from the next Start on.
//
// The packages of the groups, such as k8s.io/client-go/informers/core/v1, stay
// client-go's: their interfaces and listers work with this factory. Only their
// constructors, such as NewFilteredPodInformer, still make client-go's informers; write
// NewFilteredFor[*corev1.Pod] for those.
//
// # Concurrency properties
//
// Everything here may be called from any goroutine. A factory calls the function given
// to InformerFor with its lock held: it must not call the factory. Each started informer
// has a goroutine that Shutdown waits for.
//
// # Memory
//
// A factory holds an informer, with its cache, for each type that was asked for. None is
// ever let go: stop the informers and drop the factory to free them.
//
// Cached objects share what they have in common: strings, messages, slices and maps, among
// all types of the factory. Change none without a DeepCopy. Where informers read through
// the REST client and the server sends protobuf, they are decoded that way; what another
// client has decoded, and what a transform returns, is replaced by an equal object that
// shares, and not written to. WithSharing limits it, WithSharingAmong has several factories
// share. WithDrop and WithDropFor leave out fields that nobody reads.
//
// # What a caller must do
//
// Ask for every informer before Start, or call Start again. End the context given to
// Start before Shutdown, or meanwhile: Shutdown waits for it.
package informers

//go:generate go run ../../internal/gen/informertable
