package apisim

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection says which objects a request is about.
type selection struct {
	namespace, name string // "" is any
	labels          labels.Selector
	fields          fields.Selector
}

func newSelection(p requestPath, o *internalversion.ListOptions) (selection, error) {
	s := selection{namespace: p.namespace, name: p.name, labels: labels.Everything(), fields: fields.Everything()}
	if o.LabelSelector != nil {
		s.labels = o.LabelSelector
	}
	if o.FieldSelector != nil {
		s.fields = o.FieldSelector
	}
	for _, requirement := range s.fields.Requirements() {
		if requirement.Field != "metadata.name" && requirement.Field != "metadata.namespace" {
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field))
		}
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
		(s.fields.Empty() || s.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}))
}

// prefix returns what the keys of the selected objects begin with.
func (s selection) prefix() string {
	if s.namespace == "" {
		return ""
	}
	return s.namespace + "/"
}
