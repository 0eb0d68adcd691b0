package tidings

import "github.com/tidings-go/tidings/health"

// Health describes an informer; package health has its fields.
type Health = health.Informer

// State is what an informer is doing.
type State = health.State

// The states of an informer; package health describes them.
const (
	Pending        = health.Pending
	Listing        = health.Listing
	Watching       = health.Watching
	Backoff        = health.Backoff
	Forbidden      = health.Forbidden
	NoSuchResource = health.NoSuchResource
	Silent         = health.Silent
	Stopped        = health.Stopped
)

// HandlerHealth describes a handler; package health has its fields.
type HandlerHealth = health.Handler

// HandlerState is how a handler keeps up.
type HandlerState = health.HandlerState

// The states of a handler; package health describes them.
const (
	Idle    = health.Idle
	Busy    = health.Busy
	Behind  = health.Behind
	Stuck   = health.Stuck
	Removed = health.Removed
)
