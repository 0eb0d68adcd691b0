// Package protocoltest tests how an API server lists and watches. [Run] asks any
// [Server], apisim or a real one, for what informers rely on, and fails the test where
// an answer is another; [Tests] are the same, one by one.
//
//	Run ─▶ a namespace of its own ─▶ list  versions, matches, pages, tokens, selectors
//	                              ─▶ watch  events, selections, bookmarks, timeouts, 410
//	                              ─▶ stream initial events, their end, what follows
//	                              ─▶ forms  JSON, protobuf, metadata alone, tables
//
// # Algorithm
//
//  1. Run makes a namespace with a generated name, and deletes it at the end. Nothing
//     else of the server is touched or counted on.
//  2. Each test makes its own config maps, as these need no controller and no
//     defaults, and tells what its watches bring by type, name and version.
//  3. What should come is waited for, up to [Server].Patience. That nothing more comes
//     is shown by a write that is made last, and must be the next event.
//
// # Any server
//
// The tests of this package are of apisim, or of the server that a kubeconfig names:
//
//	go test github.com/tidings-go/tidings/apisim/protocoltest -kubeconfig ~/.kube/config
//
// # Concurrency properties
//
// The tests run one after the other, and leave nothing behind. Each of them may run
// within a testing/synctest bubble, where it takes no time; otherwise they wait for
// bookmarks and timeouts, some thirty seconds in all.
package protocoltest
