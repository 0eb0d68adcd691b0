package apisim

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cleanupFinalizer keeps a deleted definition until its objects are gone.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// defineLocked does what follows from a write of a definition that is about to be
// stored: its resources are served, served otherwise, or not any more. The new state
// gets the status that controllers would give it. It was checked before.
func (s *Server) defineLocked(before, after object) {
	if after == nil {
		s.retireLocked(before.GetName())
		return
	}
	d, err := parseDefinition(after)
	if err != nil {
		panic(err) // checkObject has let it pass
	}
	conflict := s.conflictLocked(d)
	setDefinitionStatus(after.(*unstructured.Unstructured), d, conflict)
	if before != nil && equality.Semantic.DeepEqual(before.(*unstructured.Unstructured).Object["spec"], after.(*unstructured.Unstructured).Object["spec"]) {
		return
	}
	held := s.retireLocked(d.Metadata.Name)
	if conflict != "" {
		return
	}
	if held == nil {
		held = newCollection()
		held.definition, held.floor = d.Metadata.Name, s.version
	}
	for _, r := range d.resources(held) {
		s.resources[r.gvr()] = r
	}
}

// retireLocked takes the versions of a definition out of service and returns their
// collection. Watches of them end when they have brought what is left, as the versions
// may be served otherwise from now on, or not at all.
func (s *Server) retireLocked(name string) *collection {
	var held *collection
	for gvr, r := range s.resources {
		if r.definition != name {
			continue
		}
		held = r.collection
		r.retired = true
		delete(s.resources, gvr)
	}
	if held != nil {
		held.wake()
	}
	return held
}

// markDefinitionLocked deletes a definition: first the objects, then itself.
func (s *Server) markDefinitionLocked(r *resource, before object, dryRun bool) (obj object, gone bool, err error) {
	if before.GetDeletionTimestamp() != nil {
		return before, false, nil
	}
	after := clone(before)
	begun, zero := now(), int64(0)
	after.SetDeletionTimestamp(&begun)
	after.SetDeletionGracePeriodSeconds(&zero)
	after.SetGeneration(after.GetGeneration() + 1)
	if !slices.Contains(after.GetFinalizers(), cleanupFinalizer) {
		after.SetFinalizers(append(slices.Clone(after.GetFinalizers()), cleanupFinalizer))
	}
	if dryRun {
		return after, false, nil
	}
	s.commitLocked(r, before.GetName(), before, after)
	for _, custom := range s.servedLocked() {
		if custom.definition == before.GetName() {
			custom.terminating = true
			s.emptyLocked(custom, "")
			break // the other versions hold the same objects
		}
	}
	s.finishDefinitionLocked(before.GetName())
	return after, false, nil
}

// finishDefinitionLocked removes a deleted definition when its objects are gone.
func (s *Server) finishDefinitionLocked(name string) {
	all, ok := s.resources[definitions]
	if !ok || name == "" {
		return
	}
	before, ok := all.objects.Get(name)
	if !ok || before.GetDeletionTimestamp() == nil || !slices.Contains(before.GetFinalizers(), cleanupFinalizer) {
		return
	}
	for _, r := range s.resources {
		if r.definition == name && r.objects.Len() > 0 {
			return
		}
	}
	after := clone(before)
	after.SetFinalizers(slices.DeleteFunc(after.GetFinalizers(), func(f string) bool { return f == cleanupFinalizer }))
	if isFinished(before, after) {
		after = nil
	}
	s.commitLocked(all, name, before, after)
}

// setDefinitionStatus gives a definition the status that says whether its resource is
// served. Conditions of others stay.
func setDefinitionStatus(u *unstructured.Unstructured, d *definition, conflict string) {
	status, _, _ := unstructured.NestedMap(u.Object, "status") //nolint:errcheck // a status of another form is replaced
	if status == nil {
		status = map[string]any{}
	}
	given, _, _ := unstructured.NestedSlice(status, "conditions") //nolint:errcheck // likewise
	ours := map[string]map[string]any{
		"NamesAccepted": {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"},
		"Established":   {"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
	}
	order := []string{"NamesAccepted", "Established"}
	if conflict != "" {
		ours["NamesAccepted"] = map[string]any{"type": "NamesAccepted", "status": "False", "reason": "NameConflict", "message": conflict}
		ours["Established"] = map[string]any{"type": "Established", "status": "False", "reason": "NotAccepted", "message": "not all names are accepted"}
	}
	if u.GetDeletionTimestamp() != nil {
		ours["Terminating"] = map[string]any{"type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress", "message": "CustomResource deletion is in progress"}
		order = append(order, "Terminating")
	}
	var conditions []any
	for _, one := range given {
		old, ok := one.(map[string]any)
		if !ok {
			continue
		}
		kind, _ := old["type"].(string)
		condition, known := ours[kind]
		if !known {
			conditions = append(conditions, old)
		} else if condition["status"] == old["status"] {
			condition["lastTransitionTime"] = old["lastTransitionTime"]
		}
	}
	for _, kind := range order {
		if ours[kind]["lastTransitionTime"] == nil {
			ours[kind]["lastTransitionTime"] = now().UTC().Format("2006-01-02T15:04:05Z")
		}
		conditions = append(conditions, ours[kind])
	}
	status["conditions"] = conditions
	if conflict == "" {
		names, _, _ := unstructured.NestedMap(u.Object, "spec", "names") //nolint:errcheck // it was parsed
		names["singular"], names["listKind"] = d.Spec.Names.Singular, d.Spec.Names.ListKind
		status["acceptedNames"] = names
	}
	stored, _, _ := unstructured.NestedSlice(status, "storedVersions") //nolint:errcheck // a list of another form is replaced
	if version := d.storedAs().Version; !slices.Contains(stored, any(version)) {
		stored = append(stored, version)
	}
	status["storedVersions"] = stored
	u.Object["status"] = status
}
