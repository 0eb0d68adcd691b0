package apisim

import (
	"encoding/json"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// scalePaths are the paths of the fields that the scale subresource reads and writes.
type scalePaths struct {
	Spec     string `json:"specReplicasPath"`
	Status   string `json:"statusReplicasPath"`
	Selector string `json:"labelSelectorPath"`
}

func builtinScale(r *resource) *scalePaths {
	if r.isBuiltin("deployments.apps", "replicasets.apps", "statefulsets.apps") {
		return &scalePaths{".spec.replicas", ".status.replicas", ".spec.selector"}
	}
	return nil
}

// of returns the scale of an object. Fields that are missing or of another type count as empty,
// except that a built-in object has 1 replica by default.
func (p *scalePaths) of(obj object) object {
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
	}}
	if _, isMap := obj.(*unstructured.Unstructured); !isMap {
		s.Spec.Replicas = 1
	}
	set := func(replicas *int32, path string) {
		switch n := valueAt(obj, path).(type) {
		case int32:
			*replicas = n
		case int64:
			*replicas = int32(n)
		}
	}
	set(&s.Spec.Replicas, p.Spec)
	set(&s.Status.Replicas, p.Status)
	switch selector := valueAt(obj, p.Selector).(type) {
	case string:
		s.Status.Selector = selector
	case metav1.LabelSelector:
		if parsed, err := metav1.LabelSelectorAsSelector(&selector); err == nil {
			s.Status.Selector = parsed.String()
		}
	}
	return s
}

// apply returns an object with the replicas of the scale in a request.
func (p *scalePaths) apply(res *resource, before, scale object) (object, error) {
	err := checkPreconditions(res, before, scale.GetUID(), scale.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	change := map[string]any{}
	path := strings.Split(strings.TrimPrefix(p.Spec, "."), ".")
	replicas := int64(scale.(*autoscalingv1.Scale).Spec.Replicas)
	if err := unstructured.SetNestedField(change, replicas, path...); err != nil {
		return nil, err
	}
	data, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	after, _, err := patch{types.MergePatchType, data}.apply(res, before)
	return after, err
}
