package apisim

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (x *exchange) delete() (answer, error) {
	o, err := deleteOptions(x.r)
	if err != nil {
		return answer{}, err
	}
	obj, removed, err := x.server.delete(x.res, x.path.namespace, x.path.name, o)
	if err != nil || !removed || x.res.returnsDeleted() {
		return x.single(obj, err)
	}
	return answer{statusForm(x.r), &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: obj.GetName(), Group: x.res.Group, Kind: x.res.Name, UID: obj.GetUID(),
		},
	}}, nil
}

// delete deletes an object, or marks it if it has finalizers or a grace period. It returns the last
// state or the marked one, and whether the object is removed.
func (s *Server) delete(r *resource, namespace, name string, o *metav1.DeleteOptions) (object, bool,
	error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleteLocked(r, namespace, name, o)
}

func (s *Server) deleteLocked(r *resource, namespace, name string, o *metav1.DeleteOptions) (object,
	bool, error) {
	before, err := s.getLocked(r, namespace, name)
	if err != nil {
		return nil, false, err
	}
	if err := checkDelete(r, before, o.Preconditions); err != nil {
		return nil, false, err
	}
	dryRun := len(o.DryRun) > 0
	switch r.gvr() {
	case namespaces:
		obj, err := s.deleteNamespaceLocked(r, before.(*corev1.Namespace), dryRun)
		return obj, false, err
	case definitions:
		return s.deleteDefinitionLocked(r, before, dryRun), false, nil
	}
	after := marked(before, gracePeriod(before, o))
	switch {
	case after == nil && dryRun:
		return before, true, nil
	case after == nil:
		last := atVersion(before, s.version+1)
		s.removeLocked(r, before)
		return last, true, nil
	case after != before && !dryRun:
		s.commitLocked(r, before, after)
	}
	return after, false, nil
}

// removeLocked removes an object, and then the namespace or definition that waited for this.
func (s *Server) removeLocked(r *resource, obj object) {
	s.commitLocked(r, obj, nil)
	s.finishNamespaceLocked(obj.GetNamespace())
	s.finishDefinitionLocked(r.definition)
}

// checkDelete refuses to delete an object in another state than that of the preconditions. As with
// a real server, the error has the kind in the place of the resource.
func checkDelete(r *resource, stored object, p *metav1.Preconditions) error {
	conflict := func(field string, given, is any, happened string) error {
		kind := schema.GroupResource{Group: r.Group, Resource: r.Kind}
		return apierrors.NewConflict(kind, stored.GetName(), fmt.Errorf("the %s in the precondition (%v) "+
			"does not match the %[1]s in record (%[3]v). The object might have been %[4]s",
			field, given, is, happened))
	}
	switch {
	case p == nil:
		return nil
	case p.UID != nil && *p.UID != stored.GetUID():
		return conflict("UID", *p.UID, stored.GetUID(), "deleted and then recreated")
	case p.ResourceVersion != nil && *p.ResourceVersion != stored.GetResourceVersion():
		return conflict("ResourceVersion", *p.ResourceVersion, stored.GetResourceVersion(), "modified")
	}
	return nil
}

// gracePeriod returns the time for which an object stays after its deletion. Only a pod that has a
// node and has not finished has a grace period.
func gracePeriod(obj object, o *metav1.DeleteOptions) time.Duration {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed ||
		pod.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	seconds := cmp.Or(o.GracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds)
	if running := pod.DeletionGracePeriodSeconds; pod.DeletionTimestamp != nil && running != nil {
		seconds = running // a grace period may only be shortened
		if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds < *running {
			seconds = o.GracePeriodSeconds
		}
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

// marked returns the marked state of a deleted object that stays. It returns before if before has
// this mark, and nil if the object does not stay.
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
	if end := before.GetDeletionTimestamp(); end == nil {
		if after.GetGeneration() > 0 {
			after.SetGeneration(after.GetGeneration() + 1)
		}
	} else if running != nil {
		begun = metav1.NewTime(end.Add(-time.Duration(*running) * time.Second))
	}
	after.SetDeletionTimestamp(new(metav1.NewTime(begun.Add(grace))))
	after.SetDeletionGracePeriodSeconds(&seconds)
	return after
}

func (x *exchange) deleteCollection() (answer, error) {
	l, err := x.parseList(objectList)
	if err != nil {
		return answer{}, err
	}
	o, err := deleteOptions(x.r)
	if err != nil {
		return answer{}, err
	}
	s, r := x.server, x.res
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.servesLocked(r) {
		return answer{}, errNoResource()
	}
	page := pageOf(r.objects.Copy(), position{Version: s.version}, l.selected, l.Limit)
	for _, obj := range page.objects {
		_, _, err := s.deleteLocked(r, obj.GetNamespace(), obj.GetName(), o)
		if err != nil && !apierrors.IsNotFound(err) {
			return answer{}, err
		}
	}
	return listAnswer(r, l.form, page)
}
