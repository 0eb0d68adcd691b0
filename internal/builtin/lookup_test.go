package builtin

import (
	"cmp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestTableIsOrdered asks for what the lookups rely on: one order, nothing twice.
func TestTableIsOrdered(t *testing.T) {
	kinds := map[schema.GroupVersionKind]bool{}
	for i, r := range table {
		if i > 0 {
			before := table[i-1]
			if cmp.Or(cmp.Compare(before.Group, r.Group), cmp.Compare(before.Version, r.Version), cmp.Compare(before.Resource, r.Resource)) >= 0 {
				t.Errorf("%v stands before %v", before.GVR(), r.GVR())
			}
		}
		if kinds[r.GVK()] {
			t.Errorf("%v comes twice", r.GVK())
		}
		kinds[r.GVK()] = true
	}
}

func TestLookupsFindAll(t *testing.T) {
	for _, r := range All() {
		if found, ok := ForGVR(r.GVR()); !ok || found != r {
			t.Errorf("%v is %+v", r.GVR(), found)
		}
		if found, ok := ForGVK(r.GVK()); !ok || found != r {
			t.Errorf("%v is %+v", r.GVK(), found)
		}
		for _, name := range []string{"", "a", r.Resource + "x", "zzz"} {
			if _, ok := ForGVR(schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: name}); ok {
				t.Errorf("%q is found in %s", name, r.Group)
			}
			wanted := schema.GroupVersionResource{Group: name, Version: r.Version, Resource: r.Resource}
			if found, ok := ForGVR(wanted); ok && found.GVR() != wanted {
				t.Errorf("%v is %v", wanted, found.GVR())
			}
		}
	}
}

func TestAllIsACopy(t *testing.T) {
	first := All()
	clear(first)
	if slices.Equal(All(), first) {
		t.Error("a caller can change the table")
	}
}
