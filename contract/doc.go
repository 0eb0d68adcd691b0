// Package contract has tests alone: those of the promises of informers, in one file per promise,
// over HTTP against the simulated server.
//
//	p01_…_test.go to p20_…    the promises of docs/contract.md; package tidingstest has the others, as a suite
//	s6_…, s7_…                the promises of docs/guides/scale.md that informers keep
//	faults_…_test.go          a row for every fault of package apisim: what it costs, and what it must not;
//	                          for those of faults_harmful_test.go bounds of requests and time
//	lives_…_test.go           random lives of informers, handles and handlers, against a model
//	numbers_test.go           every number of the API, found by parsing the packages, at its ends
//	logs_test.go              every line of docs/logs.md
//	world_test.go, …          the rigs: a server, a factory and an informer of each kind (probe_test.go)
//
// The promises of controllers have their tests in package controller (contract_*_test.go), those of
// shards in package shard.
//
// The other files test what is no promise by the name of its subject: options, indexes, sharing,
// terms of a factory. `go test -run TestP16_ ./...` runs the tests of one promise.
package contract
