package apisim

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
)

// printerColumn is a column that a definition gives the tables of its resource.
type printerColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
	JSONPath    string `json:"jsonPath"`
}

const creationPath = ".metadata.creationTimestamp"

// defaultColumns are those of built-in types, and of definitions that have none.
func defaultColumns() []printerColumn {
	return []printerColumn{{Name: "Age", Type: "date", JSONPath: creationPath}}
}

func (c printerColumn) parse() (*jsonpath.JSONPath, error) {
	path := jsonpath.New(c.Name)
	if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
		return nil, err
	}
	return path.AllowMissingKeys(true), nil
}

func (c printerColumn) header() metav1.TableColumnDefinition {
	description := cmp.Or(c.Description,
		"Custom resource definition column (in JSONPath format): "+c.JSONPath)
	return metav1.TableColumnDefinition{
		Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
	}
}

// cell returns the value of the column for an object, nil if the object has none.
func (c printerColumn) cell(obj object) any {
	if c.Type == "date" && c.JSONPath == creationPath {
		return age(obj.GetCreationTimestamp().Time)
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok { // a bookmark in a form without content
		return nil
	}
	path, err := c.parse()
	if err != nil {
		return nil
	}
	results, err := path.FindResults(u.Object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	if c.Type == "string" {
		var text bytes.Buffer
		if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		return text.String()
	}
	return c.convert(value)
}

// convert returns a JSON value as one of the column's type, nil if it is of another.
func (c printerColumn) convert(value any) any {
	switch value := value.(type) {
	case int64:
		switch c.Type {
		case "integer":
			return value
		case "number":
			return float64(value)
		}
	case float64:
		switch c.Type {
		case "integer":
			return int64(value)
		case "number":
			return value
		}
	case bool:
		if c.Type == "boolean" {
			return value
		}
	case string:
		if c.Type != "date" {
			return nil
		}
		t, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return "<invalid>"
		}
		return age(t)
	}
	return nil
}

func age(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}

// tableOf returns objects of a resource as a table.
func tableOf(r *resource, f form, meta metav1.ListMeta, objects ...object) *metav1.Table {
	t := &metav1.Table{ListMeta: meta, Rows: make([]metav1.TableRow, 0, len(objects))}
	t.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Table"))
	if !f.withoutColumns {
		t.ColumnDefinitions = []metav1.TableColumnDefinition{{
			Name: "Name", Type: "string", Format: "name",
			Description: "Name is unique within a namespace.",
		}}
		for _, c := range r.columns {
			t.ColumnDefinitions = append(t.ColumnDefinitions, c.header())
		}
	}
	for _, obj := range objects {
		row := metav1.TableRow{Cells: []any{obj.GetName()}}
		for _, c := range r.columns {
			row.Cells = append(row.Cells, c.cell(obj))
		}
		switch f.include {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object = runtime.RawExtension{Object: withKind(obj, r.gvk())}
		default:
			row.Object = runtime.RawExtension{Object: metadataOf(obj)}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// parseInclude reads the parameter includeObject of a table.
func parseInclude(value string) (metav1.IncludeObjectPolicy, error) {
	switch policy := metav1.IncludeObjectPolicy(value); policy {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
		return policy, nil
	default:
		return "", apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: "+
			"includeObject: must be 'Metadata', 'Object', 'None', or empty, got %q", value))
	}
}
