package apisim

import (
	"iter"
	"reflect"
	"strings"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// objectTree holds objects by their key.
type objectTree = btree.Map[string, object]

// objectSelection says which objects a request is about.
type objectSelection struct {
	namespace, name string // "" is any
	labels          labels.Selector
	fields          []fieldTest
}

func newSelection(scheme *runtime.Scheme, r *resource, p requestPath,
	o *internalversion.ListOptions) (objectSelection, error) {
	s := objectSelection{namespace: p.namespace, name: p.name, labels: labels.Everything()}
	if o.LabelSelector != nil {
		s.labels = o.LabelSelector
	}
	if o.FieldSelector == nil {
		return s, nil
	}
	selector, err := r.fieldSelector(o.FieldSelector)
	if err != nil {
		return s, err
	}
	var objectType reflect.Type
	if r.typed {
		obj, err := scheme.New(r.gvk())
		if err != nil {
			return s, err
		}
		objectType = reflect.TypeOf(obj).Elem()
	}
	s.fields = fieldTests(selector, objectType)
	return s, nil
}

// isEverything reports whether all objects of the namespace are selected.
func (s objectSelection) isEverything() bool {
	return s.name == "" && s.labels.Empty() && len(s.fields) == 0
}

func (s objectSelection) matches(obj object) bool {
	if s.namespace != "" && obj.GetNamespace() != s.namespace ||
		s.name != "" && obj.GetName() != s.name ||
		!s.labels.Empty() && !s.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	for _, test := range s.fields {
		if !test.matches(obj) {
			return false
		}
	}
	return true
}

// inNamespace returns the objects of a namespace, "" being all, with the keys from one
// on.
func inNamespace(objects *objectTree, namespace, from string) iter.Seq2[string, object] {
	prefix := ""
	if namespace != "" {
		prefix = namespace + "/"
	}
	return func(yield func(string, object) bool) {
		objects.Ascend(max(prefix, from), func(key string, obj object) bool {
			return strings.HasPrefix(key, prefix) && yield(key, obj)
		})
	}
}
