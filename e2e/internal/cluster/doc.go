// Package cluster runs the unchanged controllers and scheduler of Kubernetes beside an API
// server, with given [Informers], and stands in for the kubelets.
//
//	Informers ─▶ shared factory ─▶ controllers by name (the table of kube-controller-manager)
//	          └▶ metadata factory ─▶ garbage collector, resource quota
//	          └▶ factory with its own informer of pods ─▶ scheduler
//	API server ◀─ nodes: pods that are bound run; pods of jobs succeed
//
// # Concurrency properties
//
// A [Cluster] runs until its context ends; [Cluster.Wait] returns when all of it has.
package cluster
