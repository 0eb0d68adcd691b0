package fights

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
)

// Event keeps a state of an object that is watched, until its writer is known.
func Event[S tidings.Object](d *Detector, f *caches.Informer, s caches.State, e tidings.Event[S]) {
	if e.Initial || e.Resync || !d.ids.Load().has(s.ObjectID) {
		return
	}
	st := state{State: s, at: time.Now()}
	switch e.Type {
	case tidings.Updated:
		st.manager = writerOf(e.Old, e.New)
		resource := f.GVR()
		st.fields = fieldsOf(e.Old, e.New, dedup.IsSecret(resource.Group, resource.Resource, ""))
	case tidings.Added:
		st.manager, st.fields = LastManager(e.New), []string{wholeObject}
	default:
		st.fields = []string{wholeObject}
	}
	d.keep(st)
}

// versioning are the fields that each write changes.
var versioning = []string{
	"metadata.resourceVersion", "metadata.generation", "metadata.managedFields",
}

// fieldsOf returns the paths of the fields in which two states differ. Of a Secret, it returns
// their first parts.
func fieldsOf(before, after any, secret bool) []string {
	paths := slices.DeleteFunc(fielddiff.Paths(before, after), func(path string) bool {
		return slices.ContainsFunc(versioning, func(p string) bool { return strings.HasPrefix(path, p) })
	})
	if secret {
		for i, path := range paths {
			paths[i], _, _ = strings.Cut(path, ".")
			paths[i], _, _ = strings.Cut(paths[i], "[")
		}
		paths = slices.Compact(paths)
	}
	return paths
}

// managedFields returns the managed fields of an object; none of one that does not have them.
func managedFields(object tidings.Object) []metav1.ManagedFieldsEntry {
	if managed, ok := object.(interface {
		GetManagedFields() []metav1.ManagedFieldsEntry
	}); ok {
		return managed.GetManagedFields()
	}
	return nil
}

// writerOf returns the field manager whose write has led from a state to the next: its entry is
// new, has more fields than before, or a later time. Times are whole seconds.
func writerOf(before, after tidings.Object) string {
	earlier := managedFields(before)
	for _, entry := range managedFields(after) {
		i := slices.IndexFunc(earlier, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == entry.Manager && e.Operation == entry.Operation &&
				e.Subresource == entry.Subresource
		})
		if i < 0 || earlier[i].Time.Before(entry.Time) || sizeOf(earlier[i]) < sizeOf(entry) {
			return entry.Manager
		}
	}
	return LastManager(after)
}

func sizeOf(entry metav1.ManagedFieldsEntry) int {
	if entry.FieldsV1 == nil {
		return 0
	}
	return len(entry.FieldsV1.GetRawBytes())
}

// LastManager returns the field manager of the last write of an object, "" if its managed fields do
// not show it.
func LastManager(object tidings.Object) string {
	var last *metav1.ManagedFieldsEntry
	entries := managedFields(object)
	for i := range entries {
		at := entries[i].Time
		if at != nil && (last == nil || !at.Before(last.Time)) {
			last = &entries[i]
		}
	}
	if last == nil {
		return ""
	}
	return last.Manager
}
