package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings"
)

// IsFormat reports whether Documents has a format.
func IsFormat(format string) bool {
	return slices.Contains([]string{"name", "json", "yaml"}, format)
}

// Documents renders the newest state of each change in a format of kubectl.
type Documents struct {
	format  string
	events  bool
	printed bool // a document was printed: the next one in YAML needs a separator
}

// watchEvent is the document of a change with --output-watch-events.
type watchEvent struct {
	Context string          `json:"context,omitempty"` // if several clusters are shown
	Type    watch.EventType `json:"type"`
	Object  map[string]any  `json:"object"`
}

// NewDocuments returns a renderer of a format: name, json or yaml. With events, each object is
// part of a watch event.
func NewDocuments(format string, events bool) *Documents {
	return &Documents{format: format, events: events}
}

// Render returns the document of a change.
func (d *Documents) Render(c Change) (text string, err error) {
	obj := documentOf(c)
	var document any = obj.Object
	if d.events {
		document = watchEvent{c.Of.Context, watchType(c.Event), obj.Object}
	}
	switch d.format {
	case "name":
		kind := obj.GroupVersionKind().GroupKind()
		return Printable(strings.ToLower(kind.String())+"/"+obj.GetName()) + "\n", nil
	case "json":
		text, err = inJSON(document, !d.events)
	default:
		text, err = inYAML(document)
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

func inJSON(document any, indented bool) (string, error) {
	encoded, err := json.Marshal(document)
	if indented && err == nil {
		encoded, err = json.MarshalIndent(document, "", "    ")
	}
	return Escaped(string(encoded)) + "\n", err
}

// inYAML returns a document in YAML. JSON is YAML, too: documents with control characters that YAML
// does not escape are written as JSON.
func inYAML(document any) (string, error) {
	encoded, err := inJSON(document, false)
	if err != nil {
		return "", err
	}
	text, err := yaml.JSONToYAML([]byte(encoded))
	if err != nil || strings.ContainsFunc(string(text), isControlInDocument) {
		return encoded, nil
	}
	return string(text), nil
}

// documentOf returns the newest state of a change without its managed fields, as kubectl does.
func documentOf(c Change) *unstructured.Unstructured {
	document := &unstructured.Unstructured{Object: maps.Clone(Fields(c.Object()))}
	if metadata, ok := document.Object["metadata"].(map[string]any); ok {
		document.Object["metadata"] = maps.Clone(metadata)
	}
	document.SetManagedFields(nil)
	if document.GetKind() == "" {
		document.SetGroupVersionKind(c.Of.Kind)
	}
	return document
}

func watchType(event tidings.EventType) watch.EventType {
	switch event {
	case tidings.Added:
		return watch.Added
	case tidings.Deleted:
		return watch.Deleted
	default:
		return watch.Modified
	}
}
