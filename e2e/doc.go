// Package e2e has the tests that need a real API server. They are a module of their own,
// for what Kubernetes requires.
//
//	protocol     what apisim promises, asked of a real server
//	crashes      kill -9 and restart under load, compaction, lost connections
//	backups      an earlier state restored, with its resource versions
//	silence      connections that carry nothing any more and do not break
//	definitions  a custom type that comes and goes; permissions taken and given
//	conformance  the contract, for informers of every kind, in every encoding
//	controllers  Kubernetes' own controllers and scheduler on our informers, then on client-go's
//
// The command upstream runs the tests of others: those of programs that were written for
// client-go's informers, on the drop-in.
//
// Beside every fault run informers of every kind, each with a handler. In the end the
// cache of each, and what its handler makes of what it was told, have to be what etcd
// holds, and no handler may have been told what cannot be.
//
// Tests that mostly wait run side by side, each with a server of its own, when the others
// are over.
//
//	go test . -crashes 50 -seed 7
package e2e
