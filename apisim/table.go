package apisim

import (
	"cmp"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// printerColumn is a column that a definition specifies for the tables of its resource.
type printerColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
	JSONPath    string `json:"jsonPath"`
}

const creationPath = ".metadata.creationTimestamp"

// defaultColumns are the columns of built-in types and of definitions without columns.
func defaultColumns() []printerColumn {
	return []printerColumn{{Name: "Age", Type: "date", JSONPath: creationPath}}
}

func (c printerColumn) header() metav1.TableColumnDefinition {
	description := cmp.Or(c.Description,
		"Custom resource definition column (in JSONPath format): "+c.JSONPath)
	return metav1.TableColumnDefinition{
		Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
	}
}

// cell returns the value of the column for an object, nil if the object does not have it.
func (c printerColumn) cell(obj object) any {
	if c.JSONPath == creationPath && c.Type == "date" {
		return table.ConvertToHumanReadableDateType(obj.GetCreationTimestamp())
	}
	value := valueAt(obj, c.JSONPath)
	text, isText := value.(string)
	switch number, isFloat := value.(float64); {
	case value == nil:
	case c.Type == "date":
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return "<invalid>"
		}
		return table.ConvertToHumanReadableDateType(metav1.NewTime(t))
	case c.Type == "integer" && isFloat:
		return int64(number)
	case c.Type == "string" && !isText:
		if data, err := json.Marshal(value); err == nil {
			return string(data)
		}
	}
	return value
}

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

func parseInclude(value string) (metav1.IncludeObjectPolicy, error) {
	o := &metav1.TableOptions{IncludeObject: metav1.IncludeObjectPolicy(value)}
	if problems := validation.ValidateTableOptions(o); len(problems) > 0 {
		return "", apierrors.NewBadRequest("Unable to convert to Table as requested: " +
			problems.ToAggregate().Error())
	}
	return cmp.Or(o.IncludeObject, metav1.IncludeMetadata), nil
}
