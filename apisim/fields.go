package apisim

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

const referenceFields = "kind namespace name uid apiVersion resourceVersion fieldPath"

// selectableFields are the fields by which objects of built-in types can be selected, besides name
// and namespace, as in Kubernetes' conversions of field labels.
var selectableFields = map[string]string{
	"pods": "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName " +
		"spec.hostNetwork status.phase status.podIP status.podIPs status.nominatedNodeName",
	"nodes":                          "spec.unschedulable",
	"namespaces":                     "status.phase",
	"secrets":                        "type",
	"services":                       "spec.clusterIP spec.type",
	"replicationcontrollers":         "status.replicas",
	"replicasets.apps":               "status.replicas",
	"jobs.batch":                     "status.successful",
	"resourceslices.resource.k8s.io": "spec.nodeName spec.driver",
	"certificatesigningrequests.certificates.k8s.io": "spec.signerName",
	"events":               below("involvedObject") + "reason reportingComponent source type",
	"events.events.k8s.io": below("regarding") + "reason reportingController type",
}

// below returns the selectable fields of a reference that is the value of a field.
func below(field string) string {
	prefix := field + "."
	return prefix + strings.ReplaceAll(referenceFields, " ", " "+prefix) + " "
}

// fieldSources are the paths of the selectable fields of built-in types that are not paths
// themselves. The first path with a value is used: reporters of events set either.
var fieldSources = map[string][]string{
	"status.successful": {"status.succeeded"},
	"source":            {"source.component", "reportingComponent"},
}

// knownFields returns the fields by which objects of the resource can be selected. nil means name
// and namespace, also for a resource without namespaces.
func (r *resource) knownFields() []string {
	own, listed := r.fields, !r.typed
	if r.typed {
		var text string
		text, listed = selectableFields[r.groupResource().String()]
		own = strings.Fields(text)
	}
	switch {
	case !listed:
		return nil
	case r.Namespaced:
		return append([]string{"metadata.name", "metadata.namespace"}, own...)
	default:
		return append([]string{"metadata.name"}, own...)
	}
}

// fieldSelector refuses a selector with fields that the resource does not know, and replaces old
// names of fields.
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

// fieldPaths are the paths of the fields that a selector names.
type fieldPaths map[string][]fieldPath

func (r *resource) fieldPaths(selector fields.Selector) (fieldPaths, error) {
	paths := fieldPaths{}
	for _, q := range selector.Requirements() {
		sources := []string{q.Field}
		if others, ok := fieldSources[q.Field]; ok && r.typed {
			sources = others
		}
		for _, source := range sources {
			path, err := parseFieldPath(source)
			if err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			paths[q.Field] = append(paths[q.Field], path)
		}
	}
	return paths, nil
}

// selectedFields are the fields of an object as text, for a selector.
type selectedFields struct {
	object
	paths fieldPaths
}

// Has reports whether the selector has a path for the field.
func (f selectedFields) Has(field string) bool { return f.paths[field] != nil }

// Get returns a field as text, "" if the object does not have it.
func (f selectedFields) Get(field string) string {
	switch field {
	case "metadata.name":
		return f.GetName()
	case "metadata.namespace":
		return f.GetNamespace()
	}
	text := ""
	for _, path := range f.paths[field] {
		if value := path.of(f.object); value.IsValid() && value.Kind() != reflect.Slice {
			text = cmp.Or(text, fmt.Sprint(value.Interface()))
		}
	}
	return text
}

// fieldPath reads a field of objects that are Go types or maps. It is for one goroutine.
type fieldPath struct{ parsed *jsonpath.JSONPath }

// parseFieldPath parses a path of JSON names, such as "spec.replicas" and ".spec.replicas".
func parseFieldPath(path string) (fieldPath, error) {
	p := fieldPath{jsonpath.New(path).AllowMissingKeys(true)}
	return p, p.parsed.Parse("{." + strings.TrimPrefix(path, ".") + "}")
}

// of returns the field of an object, the zero Value if the object does not have it.
func (p fieldPath) of(obj object) reflect.Value {
	var root any = obj
	if u, isMap := obj.(*unstructured.Unstructured); isMap {
		root = u.Object
	}
	results, err := p.parsed.FindResults(root)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return reflect.Value{}
	}
	value := results[0][0]
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	return value
}

// valueAt returns a field of an object, nil if the object does not have it.
func valueAt(obj object, path string) any {
	p, err := parseFieldPath(path)
	if err != nil {
		return nil
	}
	value := p.of(obj)
	if !value.IsValid() {
		return nil
	}
	return value.Interface()
}
