package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tidings-go/tidings"
)

// Formats are the formats of [Documents].
var formats = []string{"name", "json", "yaml"}

// IsFormat reports whether Documents knows a format.
func IsFormat(format string) bool { return slices.Contains(formats, format) }

// Documents renders the newest state of each change as kubectl renders objects.
type Documents struct {
	printer printers.ResourcePrinter
	events  bool
}

// NewDocuments returns a renderer of a format: name, json or yaml. With events, each
// object comes in the envelope of a watch event, which says what happened to it.
func NewDocuments(format string, events bool) (*Documents, error) {
	d := &Documents{events: events}
	switch format {
	case "name":
		d.printer = &printers.NamePrinter{}
	case "json":
		d.printer = &printers.JSONPrinter{}
	case "yaml":
		d.printer = &printers.YAMLPrinter{}
	default:
		return nil, fmt.Errorf("output format %q: choose name, json or yaml", format)
	}
	return d, nil
}

// Render returns the document of a change.
func (d *Documents) Render(c Change) (string, error) {
	obj := documentOf(c)
	if d.events && c.Of.Context != "" {
		return d.contextual(c, obj)
	}
	if d.events {
		obj = &metav1.WatchEvent{Type: watchType(c.Event), Object: runtime.RawExtension{Object: obj}}
	}
	var b bytes.Buffer
	if err := d.printer.PrintObj(obj, &b); err != nil {
		return "", fmt.Errorf("printing %s %s: %w", c.Of.Singular, c.Name(), err)
	}
	return b.String(), nil
}

// contextual returns the document of an event of one of several clusters, which names
// the cluster's context too.
func (d *Documents) contextual(c Change, obj runtime.Object) (string, error) {
	context, err := json.Marshal(c.Of.Context)
	if err != nil {
		return "", fmt.Errorf("printing the context %q: %w", c.Of.Context, err)
	}
	var b bytes.Buffer
	event := &metav1.WatchEvent{Type: watchType(c.Event), Object: runtime.RawExtension{Object: obj}}
	if err := d.printer.PrintObj(event, &b); err != nil {
		return "", fmt.Errorf("printing %s %s: %w", c.Of.Singular, c.Name(), err)
	}
	if rest, ok := strings.CutPrefix(b.String(), "{"); ok {
		return fmt.Sprintf(`{"context":%s,%s`, context, rest), nil
	}
	return fmt.Sprintf("%scontext: %s\n", b.String(), context), nil
}

// documentOf returns the newest state of a change without its managed fields, which
// kubectl leaves out too.
func documentOf(c Change) runtime.Object {
	fields := maps.Clone(Fields(c.Object()))
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		fields["metadata"] = metadata
	}
	document := &unstructured.Unstructured{Object: fields}
	if document.GetKind() == "" {
		document.SetGroupVersionKind(c.Of.Kind)
	}
	return document
}

func watchType(event tidings.EventType) string {
	switch event {
	case tidings.Added:
		return "ADDED"
	case tidings.Deleted:
		return "DELETED"
	default:
		return "MODIFIED"
	}
}
