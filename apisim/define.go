package apisim

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// cleanupFinalizer keeps a deleted definition until its objects are removed.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// defineLocked carries out a write of a definition that is about to be stored: its
// resources are added, replaced or retired. The new state, which was checked before, gets
// the status that controllers would give it.
func (s *Server) defineLocked(before, after object) {
	if after == nil {
		s.retireLocked(before.GetName())
		return
	}
	d, err := parseDefinition(after)
	if err != nil {
		panic(err) // checkObject has accepted it
	}
	u := after.(*unstructured.Unstructured)
	d.setStatus(u)
	if before != nil && equality.Semantic.DeepEqual(
		before.(*unstructured.Unstructured).Object["spec"], u.Object["spec"]) {
		return
	}
	c := s.retireLocked(d.Metadata.Name)
	if c == nil {
		c = newCollection()
		c.definition, c.floor = d.Metadata.Name, s.version
	}
	for _, r := range d.resources(c) {
		s.resources[r.gvr()] = r
	}
}

// retireLocked takes the versions of a definition out of service and returns their
// collection. Their watches end after the events up to now.
func (s *Server) retireLocked(name string) *collection {
	var c *collection
	for gvr, r := range s.resources {
		if r.definition == name {
			c = r.collection
			delete(s.resources, gvr)
		}
	}
	if c != nil {
		c.wake()
	}
	return c
}

// deleteDefinitionLocked deletes a definition: first its objects, then itself.
func (s *Server) deleteDefinitionLocked(r *resource, before object, dryRun bool) object {
	if before.GetDeletionTimestamp() != nil {
		return before
	}
	held := clone(before)
	held.SetFinalizers(append(without(held.GetFinalizers(), cleanupFinalizer), cleanupFinalizer))
	after := marked(held, 0)
	if dryRun {
		return after
	}
	s.commitLocked(r, before, after)
	for _, custom := range s.servedLocked() {
		if custom.definition == before.GetName() {
			custom.terminating = true
			s.deleteAllLocked(custom, "")
			break // the other versions have the same objects
		}
	}
	s.finishDefinitionLocked(before.GetName())
	return after
}

// finishDefinitionLocked removes a deleted definition without objects.
func (s *Server) finishDefinitionLocked(name string) {
	all, ok := s.resources[definitions]
	if !ok || name == "" {
		return
	}
	before, ok := all.objects.Get(name)
	if !ok || before.GetDeletionTimestamp() == nil ||
		!slices.Contains(before.GetFinalizers(), cleanupFinalizer) {
		return
	}
	for _, r := range s.resources {
		if r.definition == name && r.objects.Len() > 0 {
			return
		}
	}
	after := clone(before)
	after.SetFinalizers(without(after.GetFinalizers(), cleanupFinalizer))
	if isFinished(before, after) {
		after = nil
	}
	s.commitLocked(all, before, after)
}

// setStatus sets the conditions, names and versions in the status of a definition.
// Conditions of others stay.
func (d *definition) setStatus(u *unstructured.Unstructured) {
	set := func(kind, reason, message string) {
		meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: now(),
		})
	}
	set("NamesAccepted", "NoConflicts", "no conflicts found")
	set("Established", "InitialNamesAccepted", "the initial names have been accepted")
	if u.GetDeletionTimestamp() != nil {
		set("Terminating", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	}
	d.Status.AcceptedNames = d.Spec.Names
	if version := d.storedAs().Version; !slices.Contains(d.Status.StoredVersions, version) {
		d.Status.StoredVersions = append(d.Status.StoredVersions, version)
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.Status)
	if err != nil {
		panic(err) // plain fields always convert
	}
	u.Object["status"] = status
}
