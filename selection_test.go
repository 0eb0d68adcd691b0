package tidings

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/source"
)

// TestP20_ObjectsOfAnotherScopeAreRefused, whatever is selected.
func TestP20_ObjectsOfAnotherScopeAreRefused(t *testing.T) {
	for _, test := range []struct {
		namespace string
		scope     source.Scope
		refused   bool
	}{
		{"", source.ScopeCluster, false},
		{"default", source.ScopeCluster, true},
		{"", source.ScopeNamespaced, true},
		{"default", source.ScopeNamespaced, false},
		{"", source.ScopeUnknown, false},
		{"default", source.ScopeUnknown, false},
	} {
		all, err := Selection{}.check(test.scope, nil)
		if err != nil {
			t.Fatal(err)
		}
		obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "a"}}
		accept := acceptor[*metav1.PartialObjectMetadata](all, "", test.scope)
		err = accept(source.Item[*metav1.PartialObjectMetadata]{Object: obj}, false)
		if (err != nil) != test.refused {
			t.Errorf("in namespace %q, of scope %v: %v, want refused: %v",
				test.namespace, test.scope, err, test.refused)
		}
	}
}
