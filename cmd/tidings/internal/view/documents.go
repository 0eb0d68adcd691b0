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
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings"
)

// Formats are the formats of [Documents].
var formats = []string{"name", "json", "yaml"}

// IsFormat reports whether Documents knows a format.
func IsFormat(format string) bool { return slices.Contains(formats, format) }

// Documents renders the newest state of each change as kubectl renders objects.
type Documents struct {
	format  string
	events  bool
	printed bool // a document, so that a separator comes before the next one in YAML
}

// NewDocuments returns a renderer of a format: name, json or yaml. With events, each
// object comes in the envelope of a watch event, which says what happened to it.
func NewDocuments(format string, events bool) (*Documents, error) {
	if !IsFormat(format) {
		return nil, fmt.Errorf("output format %q: choose name, json or yaml", format)
	}
	return &Documents{format: format, events: events}, nil
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
	return d.print(c, obj)
}

// print returns a document of an object of a change.
func (d *Documents) print(c Change, obj runtime.Object) (text string, err error) {
	var b bytes.Buffer
	switch d.format {
	case "name":
		err = new(printers.NamePrinter).PrintObj(obj, &b)
		text = Printable(strings.TrimSuffix(b.String(), "\n")) + "\n"
	case "json":
		err = new(printers.JSONPrinter).PrintObj(obj, &b)
		text = inJSON(b.String())
	default:
		text, err = inYAML(obj)
		if d.printed {
			text = "---\n" + text
		}
	}
	if err != nil {
		return "", fmt.Errorf("printing %s %s: %w", c.Of.Singular, c.Name(), err)
	}
	d.printed = true
	return text, nil
}

// inYAML returns an object in YAML. JSON is YAML too: one with characters that YAML does not
// escape, and a terminal takes for commands, is written so.
func inYAML(obj runtime.Object) (string, error) {
	encoded, err := json.Marshal(obj)
	if err != nil {
		return "", err
	}
	document := inJSON(string(encoded))
	text, err := yaml.JSONToYAML([]byte(document))
	if err != nil || strings.ContainsFunc(string(text), isCommandInDocument) {
		return document + "\n", nil
	}
	return string(text), nil
}

// contextual returns the document of an event of one of several clusters, which names
// the cluster's context too.
func (d *Documents) contextual(c Change, obj runtime.Object) (string, error) {
	context, err := json.Marshal(c.Of.Context)
	if err != nil {
		return "", fmt.Errorf("printing the context %q: %w", c.Of.Context, err)
	}
	text, err := d.print(c, &metav1.WatchEvent{Type: watchType(c.Event), Object: runtime.RawExtension{Object: obj}})
	if err != nil {
		return "", err
	}
	separator, document := "", text
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		separator, document = "---\n", rest
	}
	named := inJSON(string(context))
	if rest, ok := strings.CutPrefix(document, "{"); ok {
		return fmt.Sprintf(`%s{"context":%s,%s`, separator, named, rest), nil
	}
	return fmt.Sprintf("%scontext: %s\n", text, named), nil
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
