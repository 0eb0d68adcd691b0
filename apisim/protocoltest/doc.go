// Package protocoltest tests the lists and watches of an API server. [Run] sends a [Server], apisim
// or a real one, the requests that informers depend on, and fails the test for each wrong answer.
// [Tests] returns the same tests one by one.
//
//	Run ─▶ a namespace of its own ─▶ list  versions, matches, pages, tokens, selectors
//	                              ─▶ watch  events, selections, bookmarks, timeouts, 410
//	                              ─▶ stream initial events, their end, later events
//	                              ─▶ forms  JSON, protobuf, metadata alone, tables
//
// # Algorithm
//
//  1. Each test creates a namespace with a generated name, and deletes it at the end. It uses
//     nothing else of the server.
//  2. Each test creates its own config maps, as these need no controller and no defaults, and
//     compares events by type, name and version.
//  3. A test waits for an event up to [Server].EventTimeout. To show that no event comes, a test
//     makes a last write, which must be the next event.
//
// # Any server
//
// The tests of this package test apisim, or the server that a kubeconfig names:
//
//	go test github.com/tidings-go/tidings/apisim/protocoltest -kubeconfig ~/.kube/config
//
// # Concurrency properties
//
// The tests run one after the other. Each of them may run within a testing/synctest bubble, where
// it takes no time. Otherwise they wait for bookmarks and timeouts, some thirty seconds in all.
package protocoltest
