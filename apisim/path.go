package apisim

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// fieldPath reads a field of objects that are Go types or maps. It is for one goroutine.
type fieldPath struct{ parsed *jsonpath.JSONPath }

// parseFieldPath reads a path of JSON names, such as "spec.replicas" and ".spec.replicas".
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
