package apisim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// update replaces an object by another one, which belongs to the server from then on. It returns
// the object as it is stored, and whether it is new.
func (s *Server) update(r *resource, given object, o writeOptions) (object, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, err := s.getLocked(r, given.GetNamespace(), given.GetName())
	if err != nil {
		if !s.servesLocked(r) || o.part != mainResource || !r.createsOnUpdate() {
			return nil, false, err
		}
		if uid := given.GetUID(); uid != "" {
			return nil, false, errConflict(r, given, "uid mismatch: the provided object specified uid %s, "+
				"and no existing object was found", uid)
		}
		s.prepare(r, given, o)
		stored, err := s.insertLocked(r, given, o)
		return stored, true, err
	}
	if err := checkPreconditions(r, before, given.GetUID(), ""); err != nil {
		return nil, false, err
	}
	stored, err := s.replaceLocked(r, before, given, o)
	return stored, false, err
}

// replaceLocked is update for the present state of an object.
func (s *Server) replaceLocked(r *resource, before, given object, o writeOptions) (object, error) {
	version := given.GetResourceVersion()
	if (version == "" || version == "0") && r.needsVersion() && o.part != wholeObject {
		return nil, errInvalid(r, given.GetName(), field.Invalid(
			field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	}
	if version != "0" {
		if err := checkPreconditions(r, before, "", version); err != nil {
			return nil, err
		}
	}
	after := merge(r, before, given, o.part)
	if err := o.track(r, before, given, after); err != nil {
		return nil, err
	}
	problems := validation.ValidateObjectMetaAccessorUpdate(after, before, field.NewPath("metadata"))
	if len(problems) > 0 {
		return nil, errInvalid(r, given.GetName(), problems...)
	}
	if err := checkObject(r, after); err != nil {
		return nil, err
	}
	switch {
	case o.dryRun:
	case isFinished(before, after):
		s.removeLocked(r, before)
	case equality.Semantic.DeepEqual(before, withTimesOf(after, before)):
		return before, nil
	default:
		s.commitLocked(r, before, after)
		if r.gvr() == namespaces {
			s.finishNamespaceLocked(after.GetName())
		}
	}
	return after, nil
}

// withTimesOf returns an object with the times that field managers have in an earlier state, if
// only these differ: as in kube-apiserver, they are no change.
func withTimesOf(after, before object) object {
	earlier, managers := before.GetManagedFields(), slices.Clone(after.GetManagedFields())
	if len(managers) == 0 || len(managers) != len(earlier) {
		return after
	}
	for i := range managers {
		managers[i].Time = earlier[i].Time
	}
	same := clone(after)
	same.SetManagedFields(managers)
	return same
}

// isFinished reports whether an update removes the last finalizer of a deleted object, which
// removes the object.
func isFinished(before, after object) bool {
	if before.GetDeletionTimestamp() == nil || len(after.GetFinalizers()) > 0 {
		return false
	}
	if grace := before.GetDeletionGracePeriodSeconds(); grace != nil && *grace != 0 {
		return false
	}
	namespace, ok := after.(*corev1.Namespace)
	return !ok || len(namespace.Spec.Finalizers) == 0
}

// merge returns the next state of an object. The part that a client may change is that of given,
// the rest is that of before. given, or parts of it, belong to the result.
func merge(r *resource, before, given object, part objectPart) object {
	switch part {
	case statusOnly:
		return mergeStatus(r, before, given)
	case finalizersOnly:
		after := clone(before.(*corev1.Namespace))
		after.Spec.Finalizers = given.(*corev1.Namespace).Spec.Finalizers
		return after
	}
	after := given
	setStoredForm(r, after)
	if r.HasStatus && part == mainResource {
		setStatus(after, clone(before))
	}
	if namespace, ok := after.(*corev1.Namespace); ok && part == mainResource {
		namespace.Spec.Finalizers = clone(before.(*corev1.Namespace)).Spec.Finalizers
	}
	canonicalize(after)
	keepSystemMetadata(before, after)
	after.SetGeneration(before.GetGeneration())
	if before.GetGeneration() > 0 && beginsGeneration(r, before, after) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	return after
}

// mergeStatus returns the stored object with the status of given, and with its metadata where the
// type allows a write of the status to change that.
func mergeStatus(r *resource, before, given object) object {
	after := clone(before)
	setStatus(after, given)
	if !r.statusHasMetadata() {
		return after
	}
	after.SetUID(given.GetUID())
	after.SetDeletionGracePeriodSeconds(given.GetDeletionGracePeriodSeconds())
	after.SetAnnotations(given.GetAnnotations())
	after.SetFinalizers(given.GetFinalizers())
	if !r.isBuiltin("pods") {
		after.SetDeletionTimestamp(given.GetDeletionTimestamp())
		after.SetOwnerReferences(given.GetOwnerReferences())
	}
	if !r.isBuiltin("deployments.apps") {
		after.SetLabels(given.GetLabels())
	}
	keepSystemMetadata(before, after)
	return after
}

// keepSystemMetadata copies the fields that an update may leave out and may not change into the
// next state. Validation refuses changes of the others.
func keepSystemMetadata(before, after object) {
	after.SetResourceVersion(before.GetResourceVersion())
	after.SetSelfLink("")
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	if after.GetUID() == "" {
		after.SetUID(before.GetUID())
	}
	if before.GetDeletionTimestamp() != nil {
		after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	}
	if after.GetDeletionGracePeriodSeconds() == nil {
		after.SetDeletionGracePeriodSeconds(before.GetDeletionGracePeriodSeconds())
	}
}

func beginsGeneration(r *resource, before, after object) bool {
	return !equality.Semantic.DeepEqual(desired(r, before), desired(r, after)) ||
		r.annotationsCount() &&
			!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations())
}
