package apisim

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errVersionOnCreate has no status of its own in Kubernetes either: it is answered with 500.
var errVersionOnCreate = errors.New("resourceVersion should not be set on objects to be created")

// nameAttempts is the number of generated names that are tried.
const nameAttempts = 8

// create adds an object, which belongs to the server from then on, and returns it as it is stored.
func (s *Server) create(r *resource, obj object, o writeOptions) (object, error) {
	if o.part == withSystemMetadata {
		obj.SetResourceVersion("")
	}
	s.prepare(r, obj, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.insertLocked(r, obj, o)
}

// prepare sets the fields of a new object that the system sets.
func (s *Server) prepare(r *resource, obj object, o writeOptions) {
	setStoredForm(r, obj)
	if len(obj.GetManagedFields()) > 0 {
		setWholeSeconds(obj)
	}
	obj.SetSelfLink("")
	keeps := o.part == withSystemMetadata
	if !keeps || obj.GetUID() == "" {
		obj.SetUID(s.random.uid())
	}
	if created := obj.GetCreationTimestamp(); !keeps || created.IsZero() {
		obj.SetCreationTimestamp(now())
	}
	if !keeps {
		obj.SetDeletionTimestamp(nil)
		obj.SetDeletionGracePeriodSeconds(nil)
		obj.SetGeneration(0)
	}
	if r.countsGenerations() && obj.GetGeneration() == 0 {
		obj.SetGeneration(1)
	}
	if r.HasStatus && o.part == mainResource && !r.keepsStatusOnCreate() {
		setStatus(obj, nil)
	}
	switch obj := obj.(type) {
	case *corev1.Namespace:
		activate(obj)
	case *corev1.Pod:
		obj.Status.Phase = cmp.Or(obj.Status.Phase, corev1.PodPending)
	case *corev1.PersistentVolume:
		obj.Status.Phase = cmp.Or(obj.Status.Phase, corev1.VolumePending)
	case *corev1.PersistentVolumeClaim:
		obj.Status.Phase = cmp.Or(obj.Status.Phase, corev1.ClaimPending)
	}
}

func (s *Server) insertLocked(r *resource, obj object, o writeOptions) (object, error) {
	if !s.servesLocked(r) {
		return nil, errNoResource()
	}
	if r.terminating {
		err := apierrors.NewMethodNotSupported(r.groupResource(), "create")
		err.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
		return nil, err
	}
	if err := s.checkNamespaceLocked(r, obj); err != nil {
		return nil, err
	}
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	for range nameAttempts {
		if generated {
			obj.SetName(s.random.name(obj.GetGenerateName()))
		}
		if _, exists := r.objects.Get(keyOf(obj)); !exists {
			break
		}
	}
	canonicalize(obj)
	problems := validation.ValidateObjectMetaAccessor(obj, r.Namespaced, r.nameRule(),
		field.NewPath("metadata"))
	if len(problems) > 0 {
		return nil, errInvalid(r, obj.GetName(), problems...)
	}
	if err := checkObject(r, obj); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" {
		return nil, errVersionOnCreate
	}
	if present, exists := r.objects.Get(keyOf(obj)); exists {
		return nil, errExists(r, present, generated)
	}
	if !o.dryRun {
		s.commitLocked(r, nil, obj)
	}
	return obj, nil
}

func errExists(r *resource, present object, generated bool) error {
	err := apierrors.NewAlreadyExists(r.groupResource(), present.GetName())
	if generated {
		err = apierrors.NewGenerateNameConflict(r.groupResource(), present.GetName(), 1)
	}
	if present.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// checkNamespaceLocked refuses a new object in a missing or terminating namespace.
func (s *Server) checkNamespaceLocked(r *resource, obj object) error {
	all, ok := s.resources[namespaces]
	if !r.Namespaced || !ok {
		return nil // no namespace is needed, or none is served
	}
	name := obj.GetNamespace()
	namespace, ok := all.objects.Get(name)
	if !ok {
		return errNotFound(all, name)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(r.groupResource(), obj.GetName(), fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", name))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", name),
	})
	return err
}
