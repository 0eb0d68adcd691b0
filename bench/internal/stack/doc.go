// Package stack runs informers of the three stacks that are compared through one
// interface: a [Stack] makes an [Informer], which has handlers, runs, and is read.
//
//	          Stack.FromMemory(feed)   Stack.FromServer(target)
//	                    │                        │
//	client-go   tools/cache              informers, dynamicinformer
//	native      tidings.NewInformer      tidings.For, tidings.Dynamic
//	drop-in     clientgo/cache           clientgo/informers, clientgo/dynamicinformer
//
// Each stack is used as in its own documentation: through its own call where it has one, and by the
// loop that its users write where it has none. client-go and the drop-in differ in the constructors
// alone.
//
// # Concurrency properties
//
// One goroutine sets an informer up. Any number of goroutines may read it.
//
// # Memory
//
// An informer adds a few closures per handler to the memory of its stack.
package stack
