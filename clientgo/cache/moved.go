package cache

import "github.com/tidings-go/tidings/clientgo/internal/sharedinformer"

// Moved is the argument of OnDelete for an object that exists, and whose slot has left the
// informer: another process follows it. Only informers with informers.WithSlots of this module
// send it.
type Moved = sharedinformer.Moved
