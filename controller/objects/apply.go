package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/tidings-go/tidings"
)

// Applier applies configurations. It is a typed client of one resource and namespace,
// such as client.AppsV1().ReplicaSets("default").
type Applier[C any, T Object] interface {
	Apply(ctx context.Context, configuration C, o metav1.ApplyOptions) (T, error)
}

// Apply applies a configuration as a field manager, takes over the fields that other managers
// own, and returns the server's answer. cached is the cached object, or nil. Apply returns it,
// without a request, if the manager has applied just that configuration to it. extract returns
// the configuration that a manager has applied to an object: typed clients have such a function
// for each type, as ExtractReplicaSet of applyconfigurations/apps/v1.
func Apply[C any, T Object](
	ctx context.Context, client Applier[C, T], manager string, wanted C,
	cached T, extract func(object T, manager string) (C, error),
) (T, error) {
	var none T
	if any(cached) != any(none) {
		present, err := extract(cached, manager)
		if err != nil {
			return none, err
		}
		if equality.Semantic.DeepEqual(present, wanted) || isKept(wanted, cached, present) {
			return cached, nil
		}
	}
	return client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: manager, Force: true})
}

// isKept reports whether a configuration is the present one, but for zero values that an object of
// the type does not keep, as an empty string of a field with omitempty.
func isKept[C any, T Object](wanted C, cached T, present C) bool {
	kept := reflect.New(reflect.TypeOf(cached).Elem()).Interface()
	want, err1 := treeOf(wanted)
	have, err2 := treeOf(present)
	data, err3 := json.Marshal(want)
	if errors.Join(err1, err2, err3) != nil || json.Unmarshal(data, kept) != nil {
		return false
	}
	stored, err := treeOf(kept)
	return err == nil && reflect.DeepEqual(prune(want, stored), have)
}

// treeOf returns the JSON of a value, decoded.
func treeOf(value any) (tree any, err error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return tree, d.Decode(&tree)
}

// prune removes the zero values that a stored form of a tree lacks.
func prune(tree, stored any) any {
	switch t := tree.(type) {
	case map[string]any:
		s, _ := stored.(map[string]any)
		for name, value := range t {
			if kept, ok := s[name]; ok {
				t[name] = prune(value, kept)
			} else if isZero(value) {
				delete(t, name)
			}
		}
	case []any:
		s, _ := stored.([]any)
		for i := range min(len(t), len(s)) {
			t[i] = prune(t[i], s[i])
		}
	}
	return tree
}

func isZero(tree any) bool {
	switch t := tree.(type) {
	case map[string]any:
		for _, value := range t {
			if !isZero(value) {
				return false
			}
		}
		return true
	case []any:
		return len(t) == 0
	case json.Number:
		return t == "0"
	}
	return tree == nil || tree == "" || tree == false
}

// ControllerRef returns the owner reference that makes an object of a kind the controller of
// another one, and may be a view. The kind is a parameter, as cached objects lack it.
func ControllerRef(
	owner tidings.Object, kind schema.GroupVersionKind,
) *applymetav1.OwnerReferenceApplyConfiguration {
	return applymetav1.OwnerReference().
		WithAPIVersion(kind.GroupVersion().String()).WithKind(kind.Kind).
		WithName(owner.GetName()).WithUID(owner.GetUID()).
		WithController(true).WithBlockOwnerDeletion(true)
}
