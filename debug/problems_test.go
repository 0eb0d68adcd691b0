package debug

import (
	"testing"

	"github.com/tidings-go/tidings/controller"
)

func TestHeldBy(t *testing.T) {
	p := controller.Parked{Key: "a/x", Informer: "pods.v1", Object: "a/y", Version: "7"}
	for _, test := range []struct {
		unknown       bool
		problem, want string
	}{
		{false, "", "pods.v1 does not show its write of a/y"},
		{true, "", "its write of a/y had no answer, and may still arrive"},
		{false, "Forbidden", "pods.v1 does not show its write of a/y; the server cannot be asked: Forbidden"},
	} {
		p.Unknown, p.Problem = test.unknown, test.problem
		if got := heldBy(p); got != test.want {
			t.Errorf("%+v: %q, want %q", p, got, test.want)
		}
	}
}
