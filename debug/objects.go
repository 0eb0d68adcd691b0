package debug

import (
	"bytes"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	managed "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// Manager is a writer of an object, as its managed fields name it.
type Manager struct {
	Name        string    `json:"name"`
	Operation   string    `json:"operation"`
	Subresource string    `json:"subresource,omitempty"`
	At          time.Time `json:"at,omitzero"`
	// Fields are the paths of the fields that it wrote last.
	Fields []string `json:"fields"`
}

// FieldWriter is a field with its last writer. The time is that of the last write of the manager,
// which may have changed another field.
type FieldWriter struct {
	Path string
	Manager
}

// listedFields bounds the fields of a page.
const listedFields = 100

// fieldWriters returns the first fields of managers, and the number of all.
func fieldWriters(all []Manager) (fields []FieldWriter, found int) {
	for _, m := range all {
		found += len(m.Fields)
		for _, path := range m.Fields[:min(len(m.Fields), listedFields-len(fields))] {
			fields = append(fields, FieldWriter{path, m})
		}
	}
	return fields, found
}

// managedObject is an object that has managed fields; a view has none.
type managedObject interface {
	GetManagedFields() []metav1.ManagedFieldsEntry
}

// managers returns the writers of an object, the last one first, with those of their fields that
// contain a text. Managers without such a field are left out.
func managers(obj managedObject, field string) []Manager {
	var all []Manager
	for _, entry := range obj.GetManagedFields() {
		m := Manager{
			Name: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource,
		}
		if entry.Time != nil {
			m.At = entry.Time.Time
		}
		if entry.FieldsV1 != nil {
			var set managed.Set
			if set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) == nil {
				set.Leaves().Iterate(func(p managed.Path) {
					if path := p.String(); strings.Contains(path, field) {
						m.Fields = append(m.Fields, path)
					}
				})
			}
		}
		if field == "" || len(m.Fields) > 0 {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b Manager) int { return b.At.Compare(a.At) })
	return all
}

// isSecret reports whether an object of an informer, or nil, may be a Secret.
func isSecret(view inspect.View, obj any) bool {
	r := view.Resource()
	isKnown := r.Name != "" || r.Kind != ""
	return obj != nil && (dedup.IsSecret(r.Group, r.Name, r.Kind) || dedup.MayBeSecret(obj, isKnown))
}

// body returns an object as YAML, without managed fields.
func body(obj any) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return "# " + err.Error()
	}
	content = runtime.DeepCopyJSON(content) // an unstructured object returns its own map
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	form, err := yaml.Marshal(withoutObjects(content))
	if err != nil {
		return "# " + err.Error()
	}
	return string(form)
}

// withoutObjects returns a value in which a note replaces each text that repeats an object.
func withoutObjects(value any) any {
	switch value := value.(type) {
	case string:
		if fieldpath.RepeatsObject(value) {
			return "(an object, which is not shown)"
		}
	case map[string]any:
		made := make(map[string]any, len(value))
		for key, v := range value {
			made[key] = withoutObjects(v)
		}
		return made
	case []any:
		made := make([]any, len(value))
		for i, v := range value {
			made[i] = withoutObjects(v)
		}
		return made
	}
	return value
}
