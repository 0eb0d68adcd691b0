// Package served asks the discovery of an API server whether it serves a resource.
//
// Of the paths of a resource that it does not serve, kube-apiserver sends the plain page of any web
// server, and so does a proxy that does not know its way for a moment. Discovery tells them apart: its
// documents are objects, and the list of groups names all of them.
package served
