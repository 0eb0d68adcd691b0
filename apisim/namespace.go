package apisim

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	namespaces   = corev1.SchemeGroupVersion.WithResource("namespaces")
	errProtected = errors.New("this namespace may not be deleted")
	// initialNamespaces are the namespaces of every new cluster.
	initialNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}
	// protectedNamespaces are the namespaces that cannot be deleted.
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

// canonicalize gives a namespace the label with its name.
func canonicalize(obj object) {
	if n, ok := obj.(*corev1.Namespace); ok {
		n.Labels = labels.Merge(n.Labels, labels.Set{corev1.LabelMetadataName: n.Name})
	}
}

func activate(n *corev1.Namespace) {
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

// finishNamespaceLocked takes the system's finalizer from a terminating namespace that is empty.
func (s *Server) finishNamespaceLocked(name string) {
	isEmpty := func(r *resource) bool {
		for range inNamespace(&r.objects, name, "") {
			return false
		}
		return true
	}
	s.finishLocked(namespaces, name, isEmpty, func(obj object) {
		spec := &obj.(*corev1.Namespace).Spec
		spec.Finalizers = without(spec.Finalizers, corev1.FinalizerKubernetes)
	})
}

// finishLocked continues the deletion of an object that is deleted after its content. When no
// resource has any of the content, it releases the object, and removes it with its last finalizer.
func (s *Server) finishLocked(gvr schema.GroupVersionResource, name string,
	isEmpty func(*resource) bool, release func(object)) {
	all, ok := s.resources[gvr]
	if name == "" || !ok {
		return
	}
	before, ok := all.objects.Get(name)
	if !ok || before.GetDeletionTimestamp() == nil {
		return
	}
	for _, r := range s.resources {
		if !isEmpty(r) {
			return
		}
	}
	after := clone(before)
	release(after)
	switch {
	case isFinished(before, after):
		s.commitLocked(all, before, nil)
	case !equality.Semantic.DeepEqual(before, after):
		s.commitLocked(all, before, after)
	}
}

// without returns a list without an element. It changes the list.
func without[T comparable](list []T, element T) []T {
	return slices.DeleteFunc(list, func(one T) bool { return one == element })
}
