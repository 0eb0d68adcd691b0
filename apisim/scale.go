package apisim

import (
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// scalePaths are the paths of the fields of an object that its subresource scale has.
type scalePaths struct {
	Spec     string `json:"specReplicasPath"`
	Status   string `json:"statusReplicasPath"`
	Selector string `json:"labelSelectorPath"`
}

// builtinScale returns the scale of a built-in resource, nil if it has none.
func builtinScale(r *resource) *scalePaths {
	if r.isBuiltin("replicationcontrollers", "deployments.apps", "replicasets.apps",
		"statefulsets.apps") {
		return &scalePaths{".spec.replicas", ".status.replicas", ".spec.selector"}
	}
	return nil
}

// scales stands for the kind of the subresource scale.
func scales() *resource {
	return &resource{typed: true, Resource: Resource{
		Group: autoscalingv1.GroupName, Version: "v1", Name: "scales", Kind: "Scale", Namespaced: true,
	}}
}

var errNoReplicas = errors.New(
	"the object has no replicas at the path that its definition names")

// fieldsOf returns an object as a map, which may share parts of it.
func fieldsOf(obj object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// of returns the scale of an object. Fields that are missing or of another type count as
// empty, but for the replicas of a built-in object, whose default is 1.
func (p *scalePaths) of(obj object) (object, error) {
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
	}}
	values, err := fieldsOf(obj)
	if err != nil {
		return nil, err
	}
	at := func(path string) any {
		value, _, _ := unstructured.NestedFieldNoCopy(values, splitPath(path)...) //nolint:errcheck // no value
		return value
	}
	if n, ok := at(p.Spec).(int64); ok {
		s.Spec.Replicas = int32(n)
	} else if _, isMap := obj.(*unstructured.Unstructured); !isMap {
		s.Spec.Replicas = 1
	}
	if n, ok := at(p.Status).(int64); ok {
		s.Status.Replicas = int32(n)
	}
	switch selector := at(p.Selector).(type) {
	case string:
		s.Status.Selector = selector
	case map[string]any:
		s.Status.Selector = selectorText(selector)
	}
	return s, nil
}

// selectorText returns the text of a label selector, or of a set of labels.
func selectorText(value map[string]any) string {
	var given metav1.LabelSelector
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(value, &given, true)
	if err == nil {
		selector, err := metav1.LabelSelectorAsSelector(&given)
		if err != nil {
			return ""
		}
		return selector.String()
	}
	set := labels.Set{}
	for key, value := range value {
		set[key], _ = value.(string)
	}
	return set.String()
}

// apply returns an object with the replicas of a scale that was sent for it.
func (p *scalePaths) apply(res *resource, before, scale object) (object, error) {
	if err := checkPreconditions(res, before, string(scale.GetUID()), scale.GetResourceVersion()); err != nil {
		return nil, err
	}
	after := clone(before)
	values, err := fieldsOf(after)
	if err != nil {
		return nil, err
	}
	replicas := int64(scale.(*autoscalingv1.Scale).Spec.Replicas)
	if unstructured.SetNestedField(values, replicas, splitPath(p.Spec)...) != nil {
		return nil, errNoReplicas
	}
	if res.typed {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(values, after)
	}
	return after, err
}
