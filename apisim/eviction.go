package apisim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bindings and evictions are created below a pod, change it, and are not stored. The answer
// is a Status, which has no version.

// createBelow carries out a binding or an eviction.
func (x *exchange) createBelow() (answer, error) {
	obj, o, err := x.given()
	if err == nil {
		err = x.path.checkNames(obj)
	}
	if err != nil {
		return answer{}, err
	}
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := s.getLocked(x.res, x.path.namespace, x.path.name)
	if err != nil {
		return answer{}, err
	}
	switch obj := obj.(type) {
	case *corev1.Binding:
		err = s.bindLocked(x.res, stored.(*corev1.Pod), obj, o.dryRun)
	case *policyv1.Eviction:
		err = s.evictLocked(x.res, stored.(*corev1.Pod), obj, o.dryRun)
	}
	x.status = http.StatusCreated
	return answer{statusForm(x.r), &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess, Code: http.StatusCreated,
	}}, err
}

// bindLocked gives a pod a node, with the labels and annotations of the binding.
func (s *Server) bindLocked(r *resource, pod *corev1.Pod, b *corev1.Binding, dryRun bool) error {
	if b.Target.Name == "" {
		return field.Required(field.NewPath("target", "name"), "") // a 500 in Kubernetes too
	}
	if err := checkPreconditions(r, pod, b.UID, b.ResourceVersion); err != nil {
		return err
	}
	problem := ""
	switch {
	case pod.DeletionTimestamp != nil:
		problem = "is being deleted, cannot be assigned to a host"
	case pod.Spec.NodeName != "":
		problem = fmt.Sprintf("is already assigned to node %q", pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		problem = "has non-empty .spec.schedulingGates"
	}
	if problem != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name,
			fmt.Errorf("pod %s %s", pod.Name, problem))
	}
	after := pod.DeepCopy()
	after.Spec.NodeName = b.Target.Name
	after.Labels = labels.Merge(pod.Labels, b.Labels)
	after.Annotations = labels.Merge(pod.Annotations, b.Annotations)
	setCondition(after, corev1.PodCondition{Type: corev1.PodScheduled})
	if !dryRun {
		s.commitLocked(r, pod, after)
	}
	return nil
}

// evictLocked deletes a pod. It ignores disruption budgets, which no controller keeps up to date
// here.
func (s *Server) evictLocked(r *resource, pod *corev1.Pod, e *policyv1.Eviction,
	dryRun bool) error {
	o := cmp.Or(e.DeleteOptions, &metav1.DeleteOptions{}).DeepCopy()
	if err := checkDelete(r, pod, o.Preconditions); err != nil {
		return err
	}
	o.Preconditions = nil // the write of the condition changes the version
	if dryRun || len(o.DryRun) > 0 {
		return nil
	}
	after := pod.DeepCopy()
	setCondition(after, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Reason: "EvictionByEvictionAPI",
		Message: "Eviction API: evicting",
	})
	s.commitLocked(r, pod, after)
	_, _, err := s.deleteLocked(r, pod.Namespace, pod.Name, o)
	return err
}

// setCondition sets a condition of a pod to true.
func setCondition(pod *corev1.Pod, c corev1.PodCondition) {
	c.Status, c.LastTransitionTime = corev1.ConditionTrue, now()
	at := slices.IndexFunc(pod.Status.Conditions, func(present corev1.PodCondition) bool {
		return present.Type == c.Type
	})
	if at < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	}
	if present := pod.Status.Conditions[at]; present.Status == c.Status {
		c.LastTransitionTime = present.LastTransitionTime
	}
	pod.Status.Conditions[at] = c
}
