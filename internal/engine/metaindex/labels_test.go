package metaindex

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// unstructuredObjects have every form of labels and owner references, valid or not.
func unstructuredObjects() map[string]*unstructured.Unstructured {
	with := func(metadata any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	}
	owner := func(uid any, controller any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": uid, "controller": controller}
	}
	return map[string]*unstructured.Unstructured{
		"nothing":     {},
		"no labels":   with(map[string]any{}),
		"no metadata": with("text"),
		"labels":      with(map[string]any{"labels": map[string]any{"a": "1", "b": ""}}),
		"a number":    with(map[string]any{"labels": map[string]any{"a": "1", "b": int64(2)}}),
		"no map":      with(map[string]any{"labels": []any{"a"}}),
		"owners":      with(map[string]any{"ownerReferences": []any{owner("u", true), owner("v", false), owner("w", nil)}}),
		"bad owners":  with(map[string]any{"ownerReferences": []any{"u", owner("v", true)}}),
	}
}

// TestUnstructuredIsReadAsItsMethodsSay: labels and owners are equal to the copies that GetLabels
// and GetOwnerReferences return.
func TestUnstructuredIsReadAsItsMethodsSay(t *testing.T) {
	for name, u := range unstructuredObjects() {
		got, want := Labels(u), labels.Set(u.GetLabels())
		for _, key := range []string{"a", "b", "c"} {
			value, exists := got.Lookup(key)
			wanted, wantExists := want.Lookup(key)
			if value != wanted || exists != wantExists || got.Has(key) != wantExists || got.Get(key) != wanted {
				t.Errorf("%s: label %s is %q, %v, want %q, %v", name, key, value, exists, wanted, wantExists)
			}
			if has := LabelValues(u, key); wantExists != (len(has) == 1) || wantExists && has[0] != wanted {
				t.Errorf("%s: the index has %q for label %s", name, has, key)
			}
		}
		var uids []string
		for _, owner := range u.GetOwnerReferences() {
			uids = append(uids, string(owner.UID))
		}
		if has := OwnerUIDs(u); !slices.Equal(has, uids) {
			t.Errorf("%s: the index has the owners %q, want %q", name, has, uids)
		}
		for _, uid := range []types.UID{"u", "v", "w", "x"} {
			owned := slices.Contains(uids, string(uid))
			controller := metav1.GetControllerOf(u)
			controlled := controller != nil && controller.UID == uid
			if Owned(u, uid, false) != owned || Owned(u, uid, true) != controlled {
				t.Errorf("%s: owned by %s: %v, controlled: %v, want %v, %v", name, uid, Owned(u, uid, false), Owned(u, uid, true), owned, controlled)
			}
		}
	}
}

// TestReadingAllocatesNothing: labels and owners are read without a copy.
func TestReadingAllocatesNothing(t *testing.T) {
	selector := labels.SelectorFromSet(labels.Set{"a": "1"})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}, OwnerReferences: []metav1.OwnerReference{{UID: "u"}}}}
	for name, obj := range map[string]metav1.Object{
		"typed": pod, "labels": unstructuredObjects()["labels"], "owners": unstructuredObjects()["owners"],
	} {
		if n := testing.AllocsPerRun(100, func() {
			selector.Matches(Labels(obj))
			Owned(obj, "u", true)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestRequirements looks into selectors of apimachinery, and into no others.
func TestRequirements(t *testing.T) {
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	for name, test := range map[string]struct {
		selector labels.Selector
		want     int
		ok       bool
	}{
		"one of apimachinery":        {web, 1, true},
		"a validated set":            {labels.ValidatedSetSelector{"app": "web"}, 1, true},
		"everything":                 {labels.Everything(), 0, true},
		"nothing":                    {labels.Nothing(), 0, false},
		"nil":                        {nil, 0, false},
		"a type of the program":      {struct{ labels.Selector }{web}, 0, false},
		"a pointer of such a type":   {&struct{ labels.Selector }{web}, 0, false},
		"a pointer to a known value": {new(labels.ValidatedSetSelector), 0, false},
	} {
		if all, ok := Requirements(test.selector); len(all) != test.want || ok != test.ok {
			t.Errorf("%s: %v, %v", name, all, ok)
		}
	}
}
