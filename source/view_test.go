package source

import (
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestV3_WholeMetadata: a view whose metadata is of the API type declares each field of it, managed
// fields as well, which servers are not asked to leave out then.
func TestV3_WholeMetadata(t *testing.T) {
	type view struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	fields := DeclaredFields(reflect.TypeFor[*view]())
	for _, want := range []string{"metadata", "metadata.managedFields", "metadata.annotations"} {
		if !slices.Contains(fields, want) {
			t.Errorf("%q lacks %q", fields, want)
		}
	}
	if slices.Contains(fields, "metadata.name") || slices.Contains(fields[1:], "metadata") {
		t.Errorf("%q repeats what each view has", fields)
	}
}
