package controller

import (
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/controller/guard"
)

// Guard wraps the clients that controllers write with; package guard describes it.
type Guard = guard.Guard

// GuardOptions are the choices of a [Guard]. The zero value is ready.
type GuardOptions = guard.Options

// NewGuard returns a guard for the server that config names. It does not change config.
func NewGuard(config *rest.Config, o GuardOptions) (*Guard, error) { return guard.New(config, o) }
