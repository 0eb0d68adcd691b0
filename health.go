package tidings

import "github.com/tidings-go/tidings/health"

// Health describes an informer; package health has its fields.
type Health = health.Informer

// State is the state of an informer.
type State = health.State

// The states of an informer; package health describes them.
const (
	StatePending        = health.StatePending
	StateListing        = health.StateListing
	StateWatching       = health.StateWatching
	StateBackoff        = health.StateBackoff
	StateForbidden      = health.StateForbidden
	StateNoSuchResource = health.StateNoSuchResource
	StateSilent         = health.StateSilent
	StateStopped        = health.StateStopped
)

// HandlerHealth describes a handler; package health has its fields.
type HandlerHealth = health.Handler

// HandlerState is the state of a handler.
type HandlerState = health.HandlerState

// The states of a handler; package health describes them.
const (
	HandlerIdle    = health.HandlerIdle
	HandlerBusy    = health.HandlerBusy
	HandlerBehind  = health.HandlerBehind
	HandlerStuck   = health.HandlerStuck
	HandlerRemoved = health.HandlerRemoved
)
