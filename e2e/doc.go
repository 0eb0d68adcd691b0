// Package e2e has the tests that need a real API server. They are a module of their own,
// because of Kubernetes' many requirements.
//
//	protocol     the tests of apisim's answers, on a real server
//	crashes      kill -9 and restart under load, compaction, lost connections
//	backups      an earlier state restored, with its resource versions
//	managed      a request without managed fields, which the server ignores
//	silence      connections that carry nothing any more and do not break
//	instances    two or three API servers before one etcd and behind a load balancer, of which one is
//	             stopped, killed or slow
//	definitions  a custom type that is deleted and installed; permissions revoked and granted
//	conformance  the contract, for informers of every kind, in every encoding
//	controllers  Kubernetes' own controllers and scheduler on our informers, then on client-go's
//	rollout      replicas of examples/controller with the roles of its manifest
//	stopped      processes that hold a Lease, and are stopped for longer than it lasts
//	shards       replicas of a sharded controller that join, leave, are killed, stopped, parted from
//	             the server and replaced; the package journal has the rules that they are held against
//
// The command upstream runs the tests of programs that were written for client-go's
// informers, on the drop-in.
//
// Informers of every kind run during every fault, each with a handler. In the end the cache
// of each, and the sum of its handler's events, must equal the content of etcd, and no event
// may contradict the state before it.
//
// Tests that mostly wait run in parallel, each with a server of its own, after the others.
//
//	go test . -crashes 50 -seed 7
//	go test . -server 1.36
//	go test . -run TestS1_Members -v -timeout 0 -shards.kills 50 -shards.lease 15s -shards.stop 1m
package e2e
