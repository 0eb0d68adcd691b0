package tidings

import (
	"math/big"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
)

// TestMutationDetectorLooksAtOneKeyPerCall: after a list that changed everything, all that
// was replaced is kept for a while, and each object makes a call.
func TestMutationDetectorLooksAtOneKeyPerCall(t *testing.T) {
	d := newMutationDetector[*metav1.PartialObjectMetadata](func(m Mutation) { t.Error(m) })
	d.informer = func() string { return "test" }
	type changes = []change.Change[*metav1.PartialObjectMetadata]
	obj := new(metav1.PartialObjectMetadata)
	d.observe(changes{{Type: change.Added, Key: "a", New: obj}})
	d.retired["b"] = append(d.retired["b"], nil) // to look at it panics
	d.returned("handler", "a")
	delete(d.retired, "b")
	d.observe(changes{{Type: change.Deleted, Key: "a", New: new(metav1.PartialObjectMetadata)}})
	if n := len(d.retired["a"]); n != 2 {
		t.Errorf("%d states of a deleted object are kept, want the cached and the final one", n)
	}
	d.sweep()
	if n := len(d.retired["a"]); n != 2 {
		t.Errorf("after a sweep %d states of a deleted object are kept, want 2", n)
	}
	d.sweep()
	if len(d.retired)+len(d.copies) != 0 {
		t.Errorf("after two sweeps there are %v and %v", d.retired, d.copies)
	}
}

// ownType is a type of a program's own, with a part that Kubernetes cannot compare and with
// a DeepCopyObject that was never written.
type ownType struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Size *big.Int
	Next *ownType
}

func (*ownType) DeepCopyObject() runtime.Object { panic("not written yet") }

func TestMutationDetectorBearsTypesOfAProgram(t *testing.T) {
	var found []Mutation
	d := newMutationDetector[*ownType](func(m Mutation) { found = append(found, m) })
	d.informer = func() string { return "test" }
	next := &ownType{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	obj := &ownType{Size: big.NewInt(7), Next: next}
	d.observe([]change.Change[*ownType]{{Type: change.Added, Key: "a", New: obj}})
	d.sweep()
	if len(found) != 0 {
		t.Fatalf("found %v before there was a write", found)
	}
	obj.Next.Labels["a"] = "c"
	d.sweep()
	d.sweep()
	if len(found) != 1 || found[0].Key != "a" {
		t.Errorf("found %v, want one write", found)
	}
}

// words is embedded by a view, and is not exported.
type words struct {
	Words map[string]string `json:"words"`
}

// TestMutationDetectorCopiesEmbeddedFields: a copy of a view shares nothing with it that may be
// written.
func TestMutationDetectorCopiesEmbeddedFields(t *testing.T) {
	view := &struct {
		Meta  `json:"metadata"`
		words `json:",inline"`
	}{words: words{map[string]string{"a": "b"}}}
	was := copyOf[Object](view)
	if view.Words["a"] = "c"; same[Object](view, was) {
		t.Error("a write to an embedded field is not seen")
	}
	if found := fielddiff.Diff(was, view); len(found) != 1 || found[0].Path != "words.a" {
		t.Errorf("found %+v", found)
	}
}
