package engine

import "errors"

// Errors of a collection. Package tidings has them under the same names.
var (
	ErrClusterScoped = errors.New("objects of this type have no namespace: " +
		"leave Selection.Namespace and Selection.Namespaces empty")
	ErrAllNamespaces = errors.New("the informer holds all namespaces: " +
		"ask for one whose Selection names some")
	ErrLastNamespace = errors.New("it is the informer's last namespace: " +
		"Release the informer instead")
	ErrReleased      = errors.New("this handle was released: ask the factory for the informer again")
	ErrStopped       = errors.New("it has stopped and does not start again: ask for a new one")
	ErrRanAlready    = errors.New("the informer was run before, or its factory runs it: it runs once")
	ErrHandlersStuck = errors.New("handlers did not return")
	ErrGoexit        = errors.New("a callback called runtime.Goexit, which has ended the informer")
)
