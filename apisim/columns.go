package apisim

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// defaultColumns are those of a resource that defines none.
func defaultColumns() []printerColumn {
	return []printerColumn{{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"}}
}

func (c printerColumn) parse() (*jsonpath.JSONPath, error) {
	path := jsonpath.New(c.Name)
	if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
		return nil, err
	}
	return path.AllowMissingKeys(true), nil
}

func (c printerColumn) header() metav1.TableColumnDefinition {
	description := c.Description
	if description == "" {
		description = fmt.Sprintf("Custom resource definition column (in JSONPath format): %s", c.JSONPath)
	}
	return metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority}
}

// cell returns what the column shows of an object, nil if that has no such value.
func (c printerColumn) cell(u *unstructured.Unstructured) any {
	path, err := c.parse()
	if err != nil {
		return nil
	}
	results, err := path.FindResults(u.Object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	switch c.Type {
	case "string":
		var text bytes.Buffer
		if err := path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			return nil
		}
		return text.String()
	case "integer", "number":
		return numberCell(c.Type, value)
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		if text, ok := value.(string); ok {
			return dateCell(text)
		}
	}
	return nil
}

func numberCell(kind string, value any) any {
	switch value := value.(type) {
	case int64:
		if kind == "number" {
			return float64(value)
		}
		return value
	case float64:
		if kind == "integer" {
			return int64(value)
		}
		return value
	default:
		return nil
	}
}

func dateCell(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<invalid>"
	}
	return age(metav1.NewTime(t))
}

// age says how long ago something was, in short.
func age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}
