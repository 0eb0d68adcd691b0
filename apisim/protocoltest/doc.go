// Package protocoltest tests how an API server lists and watches. [Run] sends a [Server],
// apisim or a real one, the requests that informers depend on, and fails the test for each
// wrong answer; [Tests] are the same, one by one.
//
//	Run ─▶ a namespace of its own ─▶ list  versions, matches, pages, tokens, selectors
//	                              ─▶ watch  events, selections, bookmarks, timeouts, 410
//	                              ─▶ stream initial events, their end, later events
//	                              ─▶ forms  JSON, protobuf, metadata alone, tables
//
// # Algorithm
//
//  1. Run creates a namespace with a generated name, and deletes it at the end. It uses
//     nothing else of the server.
//  2. Each test creates its own config maps, as these need no controller and no defaults,
//     and compares events by type, name and version.
//  3. An event is waited for, up to [Server].EventTimeout. To show that no event comes, a
//     test makes a last write, which must be the next event.
//
// # Any server
//
// The tests of this package are of apisim, or of the server that a kubeconfig names:
//
//	go test github.com/tidings-go/tidings/apisim/protocoltest -kubeconfig ~/.kube/config
//
// # Concurrency properties
//
// The tests run one after the other, and leave nothing behind. Each of them may run within
// a testing/synctest bubble, where it takes no time; otherwise they wait for bookmarks and
// timeouts, some thirty seconds in all.
package protocoltest
