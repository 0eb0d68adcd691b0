package apisim

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errVersionOnCreate has no status of its own in Kubernetes either: it is a 500.
var errVersionOnCreate = errors.New("resourceVersion should not be set on objects to be created")

// nameAttempts is how often a generated name that is taken is replaced.
const nameAttempts = 8

// create stores a new object and returns it as it is stored.
func (s *Server) create(r *resource, given object, w writing) (object, error) {
	obj := clone(given)
	if w.part == seeded {
		obj.SetResourceVersion("")
	}
	s.prepare(r, obj, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.insertLocked(r, obj, w)
}

// prepare gives a new object what the system decides.
func (s *Server) prepare(r *resource, obj object, w writing) {
	asStored(r, obj)
	obj.SetSelfLink("")
	if w.part != seeded || obj.GetUID() == "" {
		obj.SetUID(s.random.uid())
	}
	if created := obj.GetCreationTimestamp(); w.part != seeded || created.IsZero() {
		obj.SetCreationTimestamp(now())
	}
	if w.part != seeded {
		obj.SetDeletionTimestamp(nil)
		obj.SetDeletionGracePeriodSeconds(nil)
		obj.SetGeneration(0)
	}
	if r.countsGenerations() && obj.GetGeneration() == 0 {
		obj.SetGeneration(1)
	}
	if r.HasStatus && w.part == mainResource && !r.keepsStatusOnCreate() {
		clearStatus(obj)
	}
	switch obj := obj.(type) {
	case *corev1.Namespace:
		activate(obj)
	case *corev1.Pod:
		if obj.Status.Phase == "" {
			obj.Status.Phase = corev1.PodPending
		}
	case *corev1.PersistentVolume:
		if obj.Status.Phase == "" {
			obj.Status.Phase = corev1.VolumePending
		}
	case *corev1.PersistentVolumeClaim:
		if obj.Status.Phase == "" {
			obj.Status.Phase = corev1.ClaimPending
		}
	}
}

// insertLocked checks and stores a new object that is prepared.
func (s *Server) insertLocked(r *resource, obj object, w writing) (object, error) {
	if r.removed || r.retired {
		return nil, errNoResource()
	}
	if r.terminating {
		return nil, errTerminating(r)
	}
	if err := s.checkNamespaceLocked(r, obj); err != nil {
		return nil, err
	}
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	for attempt := 1; ; attempt++ {
		if generated {
			obj.SetName(s.random.name(obj.GetGenerateName()))
		}
		_, exists := r.objects.Get(keyOf(obj.GetNamespace(), obj.GetName()))
		if !generated || !exists || attempt == nameAttempts {
			break
		}
	}
	if err := checkMetadata(r, obj); err != nil {
		return nil, err
	}
	if err := checkObject(r, obj); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" {
		return nil, errVersionOnCreate
	}
	key := keyOf(obj.GetNamespace(), obj.GetName())
	if present, exists := r.objects.Get(key); exists {
		return nil, errExists(r, present, generated)
	}
	if !w.dryRun {
		s.commitLocked(r, key, nil, obj)
	}
	return obj, nil
}

// errExists is the answer to a name that is taken.
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

// errTerminating is the answer to a create of an object whose definition was deleted.
func errTerminating(r *resource) error {
	err := apierrors.NewMethodNotSupported(r.groupResource(), "create")
	err.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
	return err
}
