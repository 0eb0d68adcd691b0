package controller

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
	"github.com/tidings-go/tidings/source"
)

// Rewrite is an object with fields that are written again and again.
type Rewrite struct {
	// Key is the key whose calls write the object, Informer the informer that holds it, and Object
	// its key there.
	Key      string `json:"key"`
	Informer string `json:"informer"`
	Object   string `json:"object"`
	// Fields are up to ten paths of the fields, as in spec.replicas; of a Secret only their first
	// parts. A creation or deletion is "(the object)".
	Fields []string `json:"fields"`
	// Manager is the field manager of the calls' writes. Other is the field manager of the others'
	// writes; a loop has none. Both are empty if the cache has no managed fields of the object.
	Manager string `json:"manager,omitzero"`
	Other   string `json:"other,omitzero"`
	// Times is the number of changes by others of a field that a call had written. In a loop, it
	// is the number of calls that own writes led to and that changed the field again.
	Times int       `json:"times"`
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

// noteState keeps a state of an object that is watched.
func noteState[T, S tidings.Object](r *run[T], f *caches.Informer, ch change, e tidings.Event[S]) {
	if e.Initial || e.Resync {
		return
	}
	st := state{version: ch.Version, deleted: ch.Deleted, at: time.Now()}
	switch e.Type {
	case tidings.Updated:
		st.manager = writerOf(e.Old, e.New)
		resource := f.GVR()
		st.fields = fieldsOf(e.Old, e.New, dedup.IsSecret(resource.Group, resource.Resource, ""))
	case tidings.Added:
		st.manager, st.fields = textOf(managerOf(e.New)), []string{wholeObject}
	default:
		st.fields = []string{wholeObject}
	}
	r.rewrites.came(ch.ObjectID, st)
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

// writerOf returns the field manager whose write has led from a state to the next: its entry is
// new, has more fields than before, or a later time. Times are whole seconds.
func writerOf(before, after metav1.Object) string {
	earlier := before.GetManagedFields()
	for _, entry := range after.GetManagedFields() {
		i := slices.IndexFunc(earlier, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == entry.Manager && e.Operation == entry.Operation &&
				e.Subresource == entry.Subresource
		})
		if i < 0 || earlier[i].Time.Before(entry.Time) || sizeOf(earlier[i]) < sizeOf(entry) {
			return entry.Manager
		}
	}
	return textOf(managerOf(after))
}

func sizeOf(entry metav1.ManagedFieldsEntry) int {
	if entry.FieldsV1 == nil {
		return 0
	}
	return len(entry.FieldsV1.GetRawBytes())
}

// noteWrites records the writes of a call that has ended.
func (r *run[T]) noteWrites(key string, began time.Time, loops bool, writes []guard.Write) {
	if len(writes) == 0 && r.rewrites.isIdle() {
		return
	}
	var own []ownWrite
	for i := range writes {
		w := &writes[i]
		f := r.c.informers.Of(w.Resource)
		if w.Conflict || w.Name == "" || f == nil {
			continue
		}
		own = append(own, ownWrite{
			ObjectID: caches.ObjectID{Informer: f.Number, Key: source.Key(w.Namespace, w.Name)}, version: w.Version,
			uid: string(w.UID), gone: w.Gone, unknown: w.Unknown, loops: loops,
		})
	}
	r.logNotices(r.rewrites.ended(key, began, loops, own))
}

// logNotices logs the beginning and the end of fights and loops.
func (r *run[T]) logNotices(all []notice) {
	for _, n := range all {
		level, text := slog.LevelInfo, "others and calls do not change the same fields in turn any more"
		switch {
		case n.loop && n.begins:
			level, text = slog.LevelWarn, "calls write the same fields again because of their own writes"
		case n.loop:
			text = "calls do not write the same fields again because of their own writes any more"
		case n.begins:
			level, text = slog.LevelWarn, "others and calls change the same fields in turn"
		}
		attrs := []any{"key", n.Key, "informer", r.c.informers.NameOf(n.id.Informer), "object", n.id.Key}
		if n.begins {
			attrs = append(attrs, "fields", n.Fields, "manager", n.Manager, "times", n.Times)
		}
		if n.begins && !n.loop {
			attrs = append(attrs, "other", n.Other)
		}
		r.c.o.Logger.Log(r.ctx, level, text, attrs...)
	}
}

// rewritten returns the present fights and loops.
func (r *run[T]) rewritten() (fights, loops []Rewrite) {
	for _, n := range r.rewrites.list() {
		n.Informer, n.Object = r.c.informers.NameOf(n.id.Informer), n.id.Key
		if n.loop {
			loops = append(loops, n.Rewrite)
		} else {
			fights = append(fights, n.Rewrite)
		}
	}
	return fights, loops
}
