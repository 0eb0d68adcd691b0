package shard

import "github.com/tidings-go/tidings/controller"

var _ controller.Term = (*Term)(nil)
