package apisim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// update replaces an object and returns it as it is stored, and whether it is new.
func (s *Server) update(r *resource, given object, w writing) (stored object, created bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, err := r.getLocked(given.GetNamespace(), given.GetName())
	if err != nil {
		if r.removed || r.retired || w.part != mainResource || !r.createsOnUpdate() {
			return nil, false, err
		}
		stored, err = s.createByUpdateLocked(r, given, w)
		return stored, true, err
	}
	if err := checkPreconditions(r, before, string(given.GetUID()), ""); err != nil {
		return nil, false, err
	}
	stored, err = s.replaceLocked(r, before, given, w)
	return stored, false, err
}

// createByUpdateLocked makes an object that an update found missing.
func (s *Server) createByUpdateLocked(r *resource, given object, w writing) (object, error) {
	if uid := given.GetUID(); uid != "" {
		return nil, apierrors.NewConflict(r.groupResource(), given.GetName(), fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	obj := clone(given)
	s.prepare(r, obj, w)
	return s.insertLocked(r, obj, w)
}

// replaceLocked stores the state that follows from the stored one and the given one.
func (s *Server) replaceLocked(r *resource, before, given object, w writing) (object, error) {
	version := given.GetResourceVersion()
	if (version == "" || version == "0") && r.needsVersion() && w.part != wholeObject {
		return nil, apierrors.NewInvalid(r.gvk().GroupKind(), given.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	}
	if version != "0" {
		if err := checkPreconditions(r, before, "", version); err != nil {
			return nil, err
		}
	}
	after := merge(r, before, given, w.part)
	if problems := validation.ValidateObjectMetaAccessorUpdate(after, before, field.NewPath("metadata")); len(problems) > 0 {
		return nil, apierrors.NewInvalid(r.gvk().GroupKind(), given.GetName(), problems)
	}
	if err := checkObject(r, after); err != nil {
		return nil, err
	}
	gone := isFinished(before, after)
	switch {
	case w.dryRun:
	case gone:
		s.commitLocked(r, keyOf(before.GetNamespace(), before.GetName()), before, nil)
		s.finishLocked(r, before.GetNamespace())
	case equality.Semantic.DeepEqual(before, after):
		return before, nil
	default:
		s.commitLocked(r, keyOf(before.GetNamespace(), before.GetName()), before, after)
		if r.gvr() == namespaces {
			s.finishNamespaceLocked(after.GetName())
		}
	}
	return after, nil
}

// isFinished reports whether an update takes the last finalizer from an object that
// was deleted, so that it goes.
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

// merge returns the next state of an object: what a client may change from given,
// the rest from before.
func merge(r *resource, before, given object, p part) object {
	switch p {
	case statusOnly:
		return mergeStatus(r, before, given)
	case finalizersOnly:
		after := clone(before).(*corev1.Namespace)
		after.Spec.Finalizers = clone(given).(*corev1.Namespace).Spec.Finalizers
		return after
	}
	after := clone(given)
	asStored(r, after)
	if r.HasStatus && p == mainResource {
		setStatus(after, clone(before))
	}
	if namespace, ok := after.(*corev1.Namespace); ok && p == mainResource {
		namespace.Spec.Finalizers = clone(before).(*corev1.Namespace).Spec.Finalizers
	}
	keepSystemMetadata(before, after)
	after.SetGeneration(before.GetGeneration())
	if before.GetGeneration() > 0 && beginsGeneration(r, before, after) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	return after
}

// mergeStatus returns the stored object with another status, and with the metadata
// of given where its type lets a status write change that.
func mergeStatus(r *resource, before, given object) object {
	after, source := clone(before), clone(given)
	setStatus(after, source)
	if !r.statusHasMetadata() {
		return after
	}
	after.SetUID(source.GetUID())
	after.SetDeletionTimestamp(source.GetDeletionTimestamp())
	after.SetDeletionGracePeriodSeconds(source.GetDeletionGracePeriodSeconds())
	after.SetAnnotations(source.GetAnnotations())
	after.SetFinalizers(source.GetFinalizers())
	switch r.Group + "/" + r.Name {
	case "apps/deployments":
		after.SetOwnerReferences(source.GetOwnerReferences())
	case "/pods":
		after.SetLabels(source.GetLabels())
		after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	default:
		after.SetLabels(source.GetLabels())
		after.SetOwnerReferences(source.GetOwnerReferences())
	}
	keepSystemMetadata(before, after)
	return after
}

// keepSystemMetadata gives the next state what an update may leave out and may not
// change. What it may neither leave out nor change is left to be refused.
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

// beginsGeneration reports whether a change is one of what is wanted, which is what
// generations count.
func beginsGeneration(r *resource, before, after object) bool {
	if !equality.Semantic.DeepEqual(counted(r, before), counted(r, after)) {
		return true
	}
	return r.annotationsCount() && !equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations())
}
