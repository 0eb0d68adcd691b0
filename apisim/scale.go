package apisim

import (
	"errors"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// scalePaths say where a custom object has its replicas, with a dot before each name.
// Built-in types know it themselves.
type scalePaths struct {
	Spec     string `json:"specReplicasPath"`
	Status   string `json:"statusReplicasPath"`
	Selector string `json:"labelSelectorPath"`
}

// builtinScale returns the scale of a built-in resource, nil if it has none.
func builtinScale(group, name string) *scalePaths {
	switch group + "/" + name {
	case "/replicationcontrollers", "apps/deployments", "apps/replicasets", "apps/statefulsets":
		return &scalePaths{}
	default:
		return nil
	}
}

// scales stands for the kind that the subresource scale is of.
func scales() *resource {
	return &resource{Resource: Resource{Group: autoscalingv1.GroupName, Version: "v1", Name: "scales", Kind: "Scale", Namespaced: true}, typed: true}
}

var errNoReplicas = errors.New("the object has no replicas at the path that its definition names")

// of returns the scale of an object.
func (p *scalePaths) of(obj object) *autoscalingv1.Scale {
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
	}}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		s.Spec.Replicas, s.Status.Replicas, s.Status.Selector = replicas(obj.Spec.Replicas), obj.Status.Replicas, selectorText(obj.Spec.Selector)
	case *appsv1.ReplicaSet:
		s.Spec.Replicas, s.Status.Replicas, s.Status.Selector = replicas(obj.Spec.Replicas), obj.Status.Replicas, selectorText(obj.Spec.Selector)
	case *appsv1.StatefulSet:
		s.Spec.Replicas, s.Status.Replicas, s.Status.Selector = replicas(obj.Spec.Replicas), obj.Status.Replicas, selectorText(obj.Spec.Selector)
	case *corev1.ReplicationController:
		s.Spec.Replicas, s.Status.Replicas, s.Status.Selector = replicas(obj.Spec.Replicas), obj.Status.Replicas, labels.Set(obj.Spec.Selector).String()
	case *unstructured.Unstructured:
		wanted, _, _ := unstructured.NestedInt64(obj.Object, fieldsOfPath(p.Spec)...)        //nolint:errcheck // what is no number counts as none
		present, _, _ := unstructured.NestedInt64(obj.Object, fieldsOfPath(p.Status)...)     //nolint:errcheck // likewise
		selector, _, _ := unstructured.NestedString(obj.Object, fieldsOfPath(p.Selector)...) //nolint:errcheck // likewise
		s.Spec.Replicas, s.Status.Replicas, s.Status.Selector = int32(wanted), int32(present), selector
	}
	return s
}

// set gives an object, which may be changed, a number of replicas.
func (p *scalePaths) set(obj object, n int32) error {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		obj.Spec.Replicas = &n
	case *appsv1.ReplicaSet:
		obj.Spec.Replicas = &n
	case *appsv1.StatefulSet:
		obj.Spec.Replicas = &n
	case *corev1.ReplicationController:
		obj.Spec.Replicas = &n
	case *unstructured.Unstructured:
		if unstructured.SetNestedField(obj.Object, int64(n), fieldsOfPath(p.Spec)...) != nil {
			return errNoReplicas
		}
	}
	return nil
}

// replicas returns a number that is 1 where it is not given.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func selectorText(s *metav1.LabelSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return ""
	}
	return selector.String()
}

// fieldsOfPath splits a path such as ".spec.replicas".
func fieldsOfPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func (s *Server) serveScale(w http.ResponseWriter, r *http.Request, res *resource, p requestPath, verb string) {
	var obj object
	var err error
	switch verb {
	case "get":
		obj, err = s.get(res, p.namespace, p.name)
	case "update":
		obj, err = s.updateScale(w, r, res, p)
	case "patch":
		obj, err = s.patchScale(w, r, res, p)
	default:
		err = errMethod(r.Method)
	}
	if err == nil {
		obj = res.scale.of(obj)
	}
	s.answer(w, r, scales(), http.StatusOK, obj, err)
}

func (s *Server) updateScale(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) (object, error) {
	o, err := parseWriteOptions(r, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	given, err := s.requestObject(w, r, scales(), p, o)
	if err != nil {
		return nil, err
	}
	return s.rewrite(res, p, writing{mainResource, o.dryRun}, func(before object) (object, error) { return p.scaled(res, before, given) })
}

func (s *Server) patchScale(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) (object, error) {
	given, err := readPatch(r, scales())
	if err != nil {
		return nil, err
	}
	o, err := parseWriteOptions(r, &metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	return s.rewrite(res, p, writing{mainResource, o.dryRun}, func(before object) (object, error) {
		scale, warnings, err := given.apply(s.decoder, scales(), res.scale.of(before))
		if err == nil {
			err = o.check(w, scales(), warnings)
		}
		if err != nil {
			return nil, err
		}
		return p.scaled(res, before, scale)
	})
}

// scaled returns an object with the replicas of a scale that was sent for it.
func (p requestPath) scaled(res *resource, before, scale object) (object, error) {
	if err := p.checkNames(scale); err != nil {
		return nil, err
	}
	if err := checkPreconditions(res, before, string(scale.GetUID()), scale.GetResourceVersion()); err != nil {
		return nil, err
	}
	after := clone(before)
	return after, res.scale.set(after, scale.(*autoscalingv1.Scale).Spec.Replicas)
}
