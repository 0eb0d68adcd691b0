package apisim

import (
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	if r.isBuiltin("deployments.apps", "replicasets.apps", "statefulsets.apps") {
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
		value, _, err := unstructured.NestedFieldNoCopy(values, splitPath(path)...)
		if err != nil {
			return nil
		}
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
		var given metav1.LabelSelector
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &given)
		if parsed, invalid := metav1.LabelSelectorAsSelector(&given); err == nil && invalid == nil {
			s.Status.Selector = parsed.String()
		}
	}
	return s, nil
}

// apply returns an object with the replicas of a scale that was sent for it.
func (p *scalePaths) apply(res *resource, before, scale object) (object, error) {
	err := checkPreconditions(res, before, string(scale.GetUID()), scale.GetResourceVersion())
	if err != nil {
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
