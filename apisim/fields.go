package apisim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
)

// selectableFields are the fields, beside name and namespace, that objects of built-in
// types can be selected by, as Kubernetes' conversions of field labels list them.
var selectableFields = map[string][]string{
	"pods": {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
		"spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP",
		"status.podIPs", "status.nominatedNodeName"},
	"nodes":                          {"spec.unschedulable"},
	"namespaces":                     {"status.phase"},
	"secrets":                        {"type"},
	"services":                       {"spec.clusterIP", "spec.type"},
	"replicationcontrollers":         {"status.replicas"},
	"replicasets.apps":               {"status.replicas"},
	"jobs.batch":                     {"status.successful"},
	"resourceslices.resource.k8s.io": {"spec.nodeName", "spec.driver"},
	"certificatesigningrequests.certificates.k8s.io": {"spec.signerName"},
	"events": append(referenceFields("involvedObject."), "reason", "reportingComponent", "source",
		"type"),
	"events.events.k8s.io": append(referenceFields("regarding."), "reason", "reportingController",
		"type"),
}

func referenceFields(prefix string) []string {
	return strings.Fields(strings.ReplaceAll(
		" kind namespace name uid apiVersion resourceVersion fieldPath", " ", " "+prefix))
}

// knownFields returns the fields that objects of the resource can be selected by; nil
// means name and namespace, whether there is one or not.
func (r *resource) knownFields() []string {
	own, special := r.fields, !r.typed
	if r.typed {
		own, special = selectableFields[r.groupResource().String()]
	}
	switch {
	case !special:
		return nil
	case r.Namespaced:
		return append([]string{"metadata.name", "metadata.namespace"}, own...)
	default:
		return append([]string{"metadata.name"}, own...)
	}
}

// fieldSelector refuses a selector by fields that the resource does not know, and
// replaces old names of fields.
func (r *resource) fieldSelector(given fields.Selector) (fields.Selector, error) {
	known := r.knownFields()
	selector, err := given.Transform(func(field, value string) (string, string, error) {
		switch {
		case known == nil:
			return runtime.DefaultMetaV1FieldSelectorConversion(field, value)
		case slices.Contains(known, field):
			return field, value, nil
		case field == "spec.host" && r.isBuiltin("pods"):
			return "spec.nodeName", value, nil
		default:
			return "", "", fmt.Errorf("field label not supported: %s", field)
		}
	})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return selector, nil
}

// fieldTest compares a field of an object with a value.
type fieldTest struct {
	get   func(obj object) string
	value string
	equal bool
}

func (t fieldTest) matches(obj object) bool { return (t.get(obj) == t.value) == t.equal }

// fieldTests returns the tests that an object has to pass for a selector.
func fieldTests(selector fields.Selector, objectType reflect.Type) []fieldTest {
	var tests []fieldTest
	for _, q := range selector.Requirements() {
		equal := q.Operator != selection.NotEquals
		tests = append(tests, fieldTest{fieldGetter(q.Field, objectType), q.Value, equal})
	}
	return tests
}

// fieldGetter returns a function that reads a field as text, "" if there is none.
// objectType is the Go type of the objects, nil for maps.
func fieldGetter(field string, objectType reflect.Type) func(object) string {
	switch {
	case field == "metadata.name":
		return object.GetName
	case field == "metadata.namespace":
		return object.GetNamespace
	case objectType == nil:
		return func(obj object) string { return mapField(obj, field) }
	case objectType == reflect.TypeFor[corev1.Event]() && field == "source":
		return eventSource
	case field == "status.podIPs": // it may be asked for, and never has a value
		return func(object) string { return "" }
	case field == "status.successful":
		field = "status.succeeded"
	}
	path := fieldPath(objectType, field)
	return func(obj object) string {
		value := reflect.ValueOf(obj).Elem()
		for _, i := range path {
			if value = reflect.Indirect(value.Field(i)); !value.IsValid() {
				return ""
			}
		}
		return fmt.Sprint(value.Interface())
	}
}

// fieldPath returns the indexes of the Go fields that a path of JSON names leads through.
func fieldPath(t reflect.Type, path string) []int {
	var indexes []int
	for name := range strings.SplitSeq(path, ".") {
		for i := range t.NumField() {
			tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if tag != name {
				continue
			}
			indexes = append(indexes, i)
			if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
				t = t.Elem()
			}
			break
		}
	}
	return indexes
}

// eventSource returns the component that reported an event, which newer reporters name
// in another field.
func eventSource(obj object) string {
	e := obj.(*corev1.Event)
	if e.Source.Component == "" {
		return e.ReportingController
	}
	return e.Source.Component
}

// mapField returns a field of a custom object as text.
func mapField(obj object, path string) string {
	u := obj.(*unstructured.Unstructured)
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, splitPath(path)...)
	if err != nil || !found || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// splitPath splits a path such as ".spec.replicas".
func splitPath(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}
