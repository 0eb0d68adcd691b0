package builtin

import (
	"fmt"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

// TestRemovedIsWhatTypesSay asks the Go types which release stops serving them.
func TestRemovedIsWhatTypesSay(t *testing.T) {
	const release = 37 // of go.mod's k8s.io/api
	for _, r := range All() {
		obj, err := scheme.Scheme.New(r.GVK())
		if err != nil {
			continue // a version that client-go no longer has
		}
		want := ""
		if lifecycle, ok := obj.(interface{ APILifecycleRemoved() (int, int) }); ok {
			if major, minor := lifecycle.APILifecycleRemoved(); minor <= release {
				want = fmt.Sprintf("%d.%d", major, minor)
			}
		}
		if r.Removed != want {
			t.Errorf("%v is removed in %q, want %q", r.GVK(), r.Removed, want)
		}
	}
}
