package tidings

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/source"
)

// inspected returns the inspection of an informer of a server that is not there.
func inspected[T Object](t *testing.T, s Selection) inspection[T] {
	t.Helper()
	f, err := NewFactory(&rest.Config{Host: "http://127.0.0.1:1"}, FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	i, err := For[T](f, s)
	if err != nil {
		t.Fatal(err)
	}
	return inspection[T]{i.collection.Load()}
}

// TestResourceOfABuiltInTypeIsKnown without the server.
func TestResourceOfABuiltInTypeIsKnown(t *testing.T) {
	want := source.Resource{Version: "v1", Name: "pods", Kind: "Pod", Scope: source.ScopeNamespaced}
	got, err := inspected[*corev1.Pod](t, Selection{}).Resolve(t.Context())
	if err != nil || got != want {
		t.Errorf("the resource is %+v, %v, want %+v", got, err, want)
	}
}

// TestInspectionHoldsTheObjectsOfItsSlots, and all objects without slots.
func TestInspectionHoldsTheObjectsOfItsSlots(t *testing.T) {
	for name, test := range map[string]struct {
		slots *Slots
		want  bool
	}{
		"no choice": {nil, true},
		"all slots": {NewSlots(ByUID, AllSlots()), true},
		"no slots":  {NewSlots(ByUID, SlotSet{}), false},
	} {
		if got := inspected[*corev1.Pod](t, Selection{Slots: test.slots}).Holds("uid", "default"); got != test.want {
			t.Errorf("%s: an object is held: %v, want %v", name, got, test.want)
		}
	}
}
