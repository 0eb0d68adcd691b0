package apisim

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// table is how objects of a resource are shown as rows.
type table struct {
	headers []metav1.TableColumnDefinition
	cells   func(obj object) []any
}

func header(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description}
}

// wide is a header that is only shown when more is asked for.
func wide(name, kind, description string) metav1.TableColumnDefinition {
	h := header(name, kind, description)
	h.Priority = 1
	return h
}

var (
	nameHeader = metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "Name is unique within a namespace."}
	ageHeader  = header("Age", "string", "How long ago the object was created.")
)

// tableOf returns the table of a resource: its own for pods, deployments and nodes,
// that of the definition for custom ones, and name and age for the others.
func tableOf(r *resource) table {
	switch {
	case !r.typed:
		return customTable(r.columns)
	case r.Group == "" && r.Name == "pods":
		return podTable()
	case r.Group == "" && r.Name == "nodes":
		return nodeTable()
	case r.Group == "apps" && r.Name == "deployments":
		return deploymentTable()
	default:
		return table{
			headers: []metav1.TableColumnDefinition{nameHeader, ageHeader},
			cells:   func(obj object) []any { return []any{obj.GetName(), age(obj.GetCreationTimestamp())} },
		}
	}
}

func customTable(columns []printerColumn) table {
	t := table{headers: []metav1.TableColumnDefinition{nameHeader}}
	for _, c := range columns {
		t.headers = append(t.headers, c.header())
	}
	t.cells = func(obj object) []any {
		cells := []any{obj.GetName()}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok { // a bookmark in a form that has no content
			u = &unstructured.Unstructured{}
		}
		for _, c := range columns {
			cells = append(cells, c.cell(u))
		}
		return cells
	}
	return t
}

// tabled returns objects as a table in a form.
func tabled(r *resource, f form, meta metav1.ListMeta, objects ...object) *metav1.Table {
	t := tableOf(r)
	shown := &metav1.Table{ListMeta: meta, Rows: make([]metav1.TableRow, 0, len(objects))}
	shown.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Table"))
	if !f.headless {
		shown.ColumnDefinitions = t.headers
	}
	for _, obj := range objects {
		row := metav1.TableRow{Cells: t.cells(obj)}
		switch f.include {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object = runtime.RawExtension{Object: withKind(obj, r.gvk())}
		default:
			row.Object = runtime.RawExtension{Object: metadataOf(obj)}
		}
		shown.Rows = append(shown.Rows, row)
	}
	return shown
}

// parseInclude reads what a table is asked to have of the objects in its rows.
func parseInclude(value string) (metav1.IncludeObjectPolicy, error) {
	switch policy := metav1.IncludeObjectPolicy(value); policy {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
		return policy, nil
	default:
		return "", fmt.Errorf("must be 'Metadata', 'Object', 'None', or empty, got %q", value)
	}
}
