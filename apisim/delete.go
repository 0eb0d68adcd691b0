package apisim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// delete deletes an object, or marks it as to be deleted when it has finalizers or a
// grace period. It returns the last state, or that with the mark.
func (s *Server) delete(r *resource, namespace, name string, o *metav1.DeleteOptions) (obj object, gone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleteLocked(r, namespace, name, o)
}

func (s *Server) deleteLocked(r *resource, namespace, name string, o *metav1.DeleteOptions) (obj object, gone bool, err error) {
	before, err := r.getLocked(namespace, name)
	if err != nil {
		return nil, false, err
	}
	if err := checkDeletePreconditions(r, before, o.Preconditions); err != nil {
		return nil, false, err
	}
	dryRun := len(o.DryRun) > 0
	switch r.gvr() {
	case namespaces:
		return s.deleteNamespaceLocked(r, before.(*corev1.Namespace), dryRun)
	case definitions:
		return s.markDefinitionLocked(r, before, dryRun)
	}
	after := marked(before, gracePeriod(before, o))
	key := keyOf(namespace, name)
	switch {
	case after == nil: // it goes at once
		last := atVersion(before, s.version+1)
		if dryRun {
			return before, true, nil
		}
		s.commitLocked(r, key, before, nil)
		s.finishLocked(r, namespace)
		return last, true, nil
	case after == before: // it is marked already
		return before, false, nil
	case !dryRun:
		s.commitLocked(r, key, before, after)
	}
	return after, false, nil
}

func checkDeletePreconditions(r *resource, stored object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != stored.GetUID() {
		return apierrors.NewConflict(r.groupResource(), stored.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, stored.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != stored.GetResourceVersion() {
		return apierrors.NewConflict(r.groupResource(), stored.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, stored.GetResourceVersion()))
	}
	return nil
}

// gracePeriod returns how long an object stays after its deletion. Only pods have
// such a time, and only those that were given a node and have not finished.
func gracePeriod(obj object, o *metav1.DeleteOptions) time.Duration {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	seconds := pod.Spec.TerminationGracePeriodSeconds
	if running := pod.DeletionGracePeriodSeconds; pod.DeletionTimestamp != nil && running != nil {
		seconds = running // it may only be made shorter
		if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds < *running {
			seconds = o.GracePeriodSeconds
		}
	} else if o.GracePeriodSeconds != nil {
		seconds = o.GracePeriodSeconds
	}
	switch {
	case seconds == nil:
		return 0
	case *seconds < 0:
		return time.Second
	default:
		return time.Duration(*seconds) * time.Second
	}
}

// marked returns the state of a deleted object that stays, before itself if nothing
// changes, and nil if it does not stay.
func marked(before object, grace time.Duration) object {
	if grace == 0 && len(before.GetFinalizers()) == 0 {
		return nil
	}
	seconds := int64(grace / time.Second)
	running := before.GetDeletionGracePeriodSeconds()
	if before.GetDeletionTimestamp() != nil && running != nil && *running == seconds {
		return before
	}
	after := clone(before)
	begun := now()
	if before.GetDeletionTimestamp() != nil {
		if running != nil {
			begun = metav1.NewTime(before.GetDeletionTimestamp().Add(-time.Duration(*running) * time.Second))
		}
	} else if after.GetGeneration() > 0 {
		after.SetGeneration(after.GetGeneration() + 1)
	}
	end := metav1.NewTime(begun.Add(grace))
	after.SetDeletionTimestamp(&end)
	after.SetDeletionGracePeriodSeconds(&seconds)
	return after
}

// deleteCollection deletes the selected objects and returns what they were, and the
// version of the list.
func (s *Server) deleteCollection(r *resource, selected selection, list *internalversion.ListOptions, o *metav1.DeleteOptions) ([]object, metav1.ListMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.removed || r.retired {
		return nil, metav1.ListMeta{}, errNoResource()
	}
	found, meta := pageOf(r.objects.Copy(), position{Version: s.version}, selected, list.Limit)
	for _, obj := range slices.Clone(found) {
		if _, _, err := s.deleteLocked(r, obj.GetNamespace(), obj.GetName(), o); err != nil && !apierrors.IsNotFound(err) {
			return nil, meta, err
		}
	}
	return found, meta, nil
}
