package apisim

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	namespaces   = corev1.SchemeGroupVersion.WithResource("namespaces")
	errProtected = errors.New("this namespace may not be deleted")
	// initialNamespaces are those of every new cluster.
	initialNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}
	// protectedNamespaces are those that cannot be deleted.
	protectedNamespaces = []string{"default", "kube-public", "kube-system"}
)

// ensureNamespaces creates missing namespaces, unless a test has removed the resource.
func (s *Server) ensureNamespaces(names ...string) error {
	r, err := s.find(namespaces)
	if err != nil {
		return nil //nolint:nilerr // without namespaces no object needs one
	}
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := s.create(r, namespace, writeOptions{part: withSystemMetadata})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

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

// deleteNamespaceLocked marks a namespace as terminating and does the work of its
// controller: it deletes the content, and then the namespace. Objects with finalizers or a
// grace period keep the namespace until they are removed too.
func (s *Server) deleteNamespaceLocked(r *resource, before *corev1.Namespace, dryRun bool) (object,
	error) {
	if slices.Contains(protectedNamespaces, before.Name) {
		return nil, apierrors.NewForbidden(r.groupResource(), before.Name, errProtected)
	}
	if before.DeletionTimestamp != nil {
		if len(before.Spec.Finalizers) > 0 {
			return nil, errConflict(r, before, "The system is ensuring all content is removed from this "+
				"namespace.  Upon completion, this namespace will automatically be purged by the system.")
		}
		return before, nil
	}
	after := before.DeepCopy()
	after.DeletionTimestamp = new(now())
	after.Status.Phase = corev1.NamespaceTerminating
	if dryRun {
		return after, nil
	}
	s.commitLocked(r, before, after)
	for _, r := range s.servedLocked() { // always in the same order
		if r.Namespaced {
			s.deleteAllLocked(r, before.Name)
		}
	}
	s.finishNamespaceLocked(before.Name)
	return after, nil
}

// deleteAllLocked deletes the objects of a namespace, "" being all.
func (s *Server) deleteAllLocked(r *resource, namespace string) {
	for _, obj := range inNamespace(r.objects.Copy(), namespace, "") {
		o := &metav1.DeleteOptions{}
		s.deleteLocked(r, obj.GetNamespace(), obj.GetName(), o) //nolint:errcheck // it exists
	}
}

// finishNamespaceLocked goes on with a terminating namespace: when it is empty, the
// system's finalizer goes, and with the last finalizer the namespace.
func (s *Server) finishNamespaceLocked(name string) {
	all, ok := s.resources[namespaces]
	if name == "" || !ok {
		return
	}
	obj, ok := all.objects.Get(name)
	if !ok || obj.GetDeletionTimestamp() == nil {
		return
	}
	for _, r := range s.resources {
		if !r.Namespaced {
			continue
		}
		for range inNamespace(&r.objects, name, "") {
			return
		}
	}
	before := obj.(*corev1.Namespace)
	after := before.DeepCopy()
	after.Spec.Finalizers = without(after.Spec.Finalizers, corev1.FinalizerKubernetes)
	switch {
	case isFinished(before, after):
		s.commitLocked(all, before, nil)
	case len(after.Spec.Finalizers) != len(before.Spec.Finalizers):
		s.commitLocked(all, before, after)
	}
}

// without returns a list without an element. It changes the list.
func without[T comparable](list []T, element T) []T {
	return slices.DeleteFunc(list, func(one T) bool { return one == element })
}
