package apisim

import (
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection says which objects a request is about.
type selection struct {
	namespace, name string // "" is any
	labels          labels.Selector
	fields          fields.Selector
	custom          []string // the paths of the resource's own fields
}

func newSelection(r *resource, p requestPath, o *internalversion.ListOptions) (selection, error) {
	s := selection{namespace: p.namespace, name: p.name, labels: labels.Everything(), fields: fields.Everything(), custom: r.fields}
	if o.LabelSelector != nil {
		s.labels = o.LabelSelector
	}
	if o.FieldSelector != nil {
		selector, err := r.fieldSelector(o.FieldSelector)
		if err != nil {
			return s, err
		}
		s.fields = selector
	}
	return s, nil
}

// everything reports whether all objects of the namespace are selected.
func (s selection) everything() bool {
	return s.name == "" && s.labels.Empty() && s.fields.Empty()
}

func (s selection) matches(obj object) bool {
	return (s.namespace == "" || obj.GetNamespace() == s.namespace) &&
		(s.name == "" || obj.GetName() == s.name) &&
		(s.labels.Empty() || s.labels.Matches(labels.Set(obj.GetLabels()))) &&
		(s.fields.Empty() || s.fields.Matches(objectFields{obj, s.custom}))
}

// prefix returns what the keys of the selected objects begin with.
func (s selection) prefix() string {
	if s.namespace == "" {
		return ""
	}
	return s.namespace + "/"
}
