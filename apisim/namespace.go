package apisim

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	namespaces  = corev1.SchemeGroupVersion.WithResource("namespaces")
	errStanding = errors.New("this namespace may not be deleted")
	errEmptying = fmt.Errorf("%s", "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace will automatically be purged by the system.")
	// standingNamespaces are those that every cluster has.
	standingNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}
	// immortalNamespaces are those that cannot be deleted.
	immortalNamespaces = []string{"default", "kube-public", "kube-system"}
)

// activate gives a namespace what every one has.
func activate(n *corev1.Namespace) {
	if n.Labels == nil {
		n.Labels = make(map[string]string, 1)
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
	if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
		n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
	if n.Status.Phase == "" {
		n.Status.Phase = corev1.NamespaceActive
	}
}

// deleteNamespaceLocked marks a namespace as terminating and does what its
// controller would: it deletes the content, and then the namespace. What has
// finalizers or a grace period keeps the namespace until it is gone too.
func (s *Server) deleteNamespaceLocked(r *resource, before *corev1.Namespace, dryRun bool) (obj object, gone bool, err error) {
	if slices.Contains(immortalNamespaces, before.Name) {
		return nil, false, apierrors.NewForbidden(r.groupResource(), before.Name, errStanding)
	}
	if before.DeletionTimestamp != nil {
		if len(before.Spec.Finalizers) > 0 {
			return nil, false, apierrors.NewConflict(r.groupResource(), before.Name, errEmptying)
		}
		return before, false, nil
	}
	after := before.DeepCopy()
	begun := now()
	after.DeletionTimestamp = &begun
	after.Status.Phase = corev1.NamespaceTerminating
	if dryRun {
		return after, false, nil
	}
	s.commitLocked(r, before.Name, before, after)
	s.emptyNamespaceLocked(before.Name)
	s.finishNamespaceLocked(before.Name)
	return after, false, nil
}

// emptyNamespaceLocked deletes what a namespace holds, in an order that is always the
// same.
func (s *Server) emptyNamespaceLocked(namespace string) {
	for _, r := range s.servedLocked() {
		if r.Namespaced {
			s.emptyLocked(r, namespace)
		}
	}
}

// emptyLocked deletes the objects of a namespace, "" being all.
func (s *Server) emptyLocked(r *resource, namespace string) {
	var held []object
	for obj := range r.contentLocked(namespace) {
		held = append(held, obj)
	}
	for _, obj := range held {
		s.deleteLocked(r, obj.GetNamespace(), obj.GetName(), &metav1.DeleteOptions{}) //nolint:errcheck // it was found under this lock, and has no preconditions
	}
}

// contentLocked returns the objects of a namespace, "" being all.
func (r *resource) contentLocked(namespace string) iter.Seq[object] {
	return func(yield func(object) bool) {
		prefix := selection{namespace: namespace}.prefix()
		r.objects.Ascend(prefix, func(key string, obj object) bool {
			return strings.HasPrefix(key, prefix) && yield(obj)
		})
	}
}

// finishNamespaceLocked goes on with a namespace that is terminating: when nothing is
// left in it, the system's finalizer goes, and with the last finalizer the namespace.
func (s *Server) finishNamespaceLocked(name string) {
	all, ok := s.resources[namespaces]
	if name == "" || !ok || all.removed {
		return
	}
	obj, ok := all.objects.Get(name)
	if !ok || obj.GetDeletionTimestamp() == nil {
		return
	}
	for _, r := range s.resources {
		if !r.Namespaced || r.removed {
			continue
		}
		for range r.contentLocked(name) {
			return // something is left
		}
	}
	before := obj.(*corev1.Namespace)
	after := before.DeepCopy()
	after.Spec.Finalizers = slices.DeleteFunc(after.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	switch {
	case isFinished(before, after):
		s.commitLocked(all, name, before, nil)
	case len(after.Spec.Finalizers) != len(before.Spec.Finalizers):
		s.commitLocked(all, name, before, after)
	}
}
