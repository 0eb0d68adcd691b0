// Package stack runs informers of the three stacks that are compared through one
// interface: a [Stack] makes an [Informer], which has handlers, runs, and is read.
//
//	          Stack.FromMemory(feed)   Stack.FromServer(target)
//	                    │                        │
//	client-go   tools/cache              informers, dynamicinformer
//	native      tidings.NewInformer      tidings.For, tidings.Dynamic
//	drop-in     clientgo/cache           clientgo/informers, clientgo/dynamicinformer
//
// Each stack is used as its own documentation says: what it has a call for is done by
// that call, and what it has none for by the loop that its users write. client-go and the
// drop-in differ in the constructors alone.
//
// # Concurrency properties
//
// An informer is set up by one goroutine and then read by any number.
//
// # Memory
//
// An informer adds nothing to what its stack holds but a few closures per handler.
package stack
