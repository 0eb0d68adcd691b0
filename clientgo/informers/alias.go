package informers

import "k8s.io/client-go/informers"

// SharedInformerFactory shares informers among all who ask for the same type. It is
// client-go's own interface, so that a factory can be handed to any code that was
// written for client-go.
type SharedInformerFactory = informers.SharedInformerFactory

// GenericInformer is an informer and a lister whose type is not known at compile
// time. It is client-go's own interface.
type GenericInformer = informers.GenericInformer
