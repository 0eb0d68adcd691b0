// Package informers has the constructors and options of k8s.io/client-go/informers under
// their names, so that a program moves by changing that import. A [SharedInformerFactory]
// shares Tidings' informers by type; [NewFor] makes one that is not shared, [ForGroup] puts
// custom resources on a factory.
//
//	factory.Core(), Apps(), … .V1().Pods().Informer()   client-go's generated groups
//	        │
//	        ▼
//	groups, their private factory ─▶ table of resources ─▶ Tidings' informer ─┐
//	factory.ForResource(gvr) ─────────────┘                                   ▼
//	factory.InformerFor(obj, newFunc) ────▶ newFunc's informer ──▶ informers by Go type
//	ForGroup(factory, …) ─────────────────▶ a custom resource's ──────────────▲
//
// # How an informer is made
//
//  1. The factory looks for an informer of the same Go type. The first call decides which
//     informer it is; every later call returns the same.
//  2. InformerFor runs its caller's function, as in client-go: it may select by fields, as
//     kube-scheduler's does for pods, and the factory does not know this.
//  3. A group accessor and ForResource take the row of the resource from the generated table.
//     With a *kubernetes.Clientset the informer reads through its REST client, with Tidings'
//     source and decoder. Any other client, such as a fake, is read through its own typed
//     methods.
//  4. The factory's transform is set on it. It runs from the next Start on.
//
// The packages of the groups, such as k8s.io/client-go/informers/core/v1, stay client-go's:
// their interfaces and listers work with this factory. Only their constructors, such as
// NewFilteredPodInformer, still make client-go's informers; write
// NewFilteredFor[*corev1.Pod] for those.
//
// # Concurrency properties
//
// Everything here may be called from any goroutine. A factory calls the function given to
// InformerFor with its lock held: it must not call the factory. Each started informer has a
// goroutine that Shutdown waits for.
//
// # Memory
//
// A factory holds an informer, with its cache, for each type that was asked for. To free
// them, stop the informers and drop the factory.
//
// Cached objects share equal strings, messages, slices and maps, among all types of the
// factory. Change none without a DeepCopy. [WithSharing] limits it, [WithSharingAmong]
// extends it to several factories, [WithDrop] and [WithDropFor] leave out fields. With
// [WithoutServerDrop] the server sends managed fields all the same.
//
// # What a caller must do
//
// Ask for every informer before Start, or call Start again. End the context given to Start
// before Shutdown, or meanwhile.
package informers

//go:generate go run ../../internal/tool/gen/informertable
