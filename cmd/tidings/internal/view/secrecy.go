package view

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/dedup"
	"github.com/tidings-go/tidings/source"
)

// Secrecy hides the data of Secrets, annotations in which tools keep a copy of it, and everything
// else in a Secret that repeats it. Its zero value hides.
type Secrecy struct {
	// Show leaves everything as it is.
	Show bool
}

// Apply returns the change with copies of its objects in which the data is hidden. Values that
// differ between the two states still differ.
func (s Secrecy) Apply(c Change) Change {
	if s.Show || !dedup.IsSecret(c.Of.Kind.Group, c.Of.Plural, c.Of.Kind.Kind) {
		return c
	}
	var values redactor // of both states: one may repeat the data of the other
	for _, obj := range []tidings.Object{c.Old, c.New} {
		if obj != nil {
			fields := Fields(obj)
			values = append(append(values, textsIn(fields["data"])...),
				textsIn(fields["stringData"])...)
		}
	}
	old, now := c.Old, c.New
	if old != nil {
		c.Old = values.object(old, c.Of)
	}
	if now != nil {
		redacted := values.object(now, c.Of)
		if old != nil {
			markChanged(Fields(old), Fields(now), redacted.Object)
		}
		c.New = redacted
	}
	return c
}

// errRedacted stands for an error that may quote a Secret.
var errRedacted = errors.New("the server's answer cannot be decoded (not quoted: it may be the " +
	"data of a Secret)")

// Error returns an error that does not quote the server's answer if that may be a Secret.
func (s Secrecy) Error(err error) error {
	sourceErr, ok := errors.AsType[*source.Error](err)
	if s.Show || !ok || sourceErr.Phase != source.Decoding && sourceErr.Phase != source.Streaming {
		return err
	}
	parts := append(strings.SplitN(sourceErr.Resource, ".", 3), "", "") // name, version, group
	if !dedup.IsSecret(parts[2], parts[0], parts[0]) {
		return err
	}
	redacted := *sourceErr
	redacted.Err = errRedacted
	return &redacted
}

// textsIn returns the strings and numbers in a value, each as it is, and in base64 or decoded.
func textsIn(value any) (texts []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range v {
			texts = append(texts, textsIn(field)...)
		}
	case []any:
		for _, element := range v {
			texts = append(texts, textsIn(element)...)
		}
	case string:
		content, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			content = []byte(v)
		}
		texts = append(texts, strings.TrimRight(v, "="), string(bytes.TrimSpace(content)),
			base64.RawURLEncoding.EncodeToString(content), base64.RawStdEncoding.EncodeToString(content))
	case int64, float64:
		texts = append(texts, fmt.Sprint(v))
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// redactor is the values of a Secret. It hides texts that repeat one of them.
type redactor []string

const (
	// minSecretLength is the least length of a value that is searched for in longer texts.
	minSecretLength = 4
	// minPartLength is the least length of a text that is searched for in values.
	minPartLength = 8
)

// repeats reports whether a text contains a value of a Secret, or is a part of one.
func (r redactor) repeats(text string) bool {
	return slices.ContainsFunc(r, func(value string) bool {
		return text == value || len(value) >= minSecretLength && strings.Contains(text, value) ||
			len(text) >= minPartLength && strings.Contains(value, text)
	})
}

// hiddenPrefix begins the markers, which stand for hidden values.
const hiddenPrefix = "<hidden"

func marker(length int) string {
	return fmt.Sprintf("%s, %s>", hiddenPrefix, Counted(length, "byte", "bytes"))
}

func (r redactor) text(text string) string {
	if r.repeats(text) {
		return marker(len(text))
	}
	return text
}

// value returns a copy of a value with markers for the strings and keys that repeat a value of
// the Secret.
func (r redactor) value(value any) any {
	switch v := value.(type) {
	case string:
		return r.text(v)
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, field := range v {
			copied[r.text(key)] = r.value(field)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = r.value(v[i])
		}
		return copied
	}
	return value
}

// object returns a copy of a Secret without its data and without anything that repeats it. What
// identifies the object stays.
func (r redactor) object(obj tidings.Object, of Type) *unstructured.Unstructured {
	fields := Fields(obj)
	rest := maps.Clone(fields)
	for _, name := range []string{"data", "stringData", "metadata"} {
		delete(rest, name)
	}
	redacted, _ := r.value(rest).(map[string]any)
	restore(redacted, fields, "apiVersion", "kind")
	for _, name := range []string{"data", "stringData"} {
		if value := fields[name]; value != nil {
			redacted[name] = hiddenData(value, name == "data")
		}
	}
	u := &unstructured.Unstructured{Object: redacted}
	if u.GetKind() == "" {
		u.SetGroupVersionKind(of.Kind)
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		return u
	}
	copied := r.value(metadata).(map[string]any)
	restore(copied, metadata, "name", "namespace", "uid", "resourceVersion", "creationTimestamp",
		"deletionTimestamp", "generation")
	redacted["metadata"] = copied
	annotations, _ := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		if text, ok := value.(string); !ok || copiesData(key, text) {
			copied["annotations"].(map[string]any)[r.text(key)] = marker(len(text))
		}
	}
	return u
}

// restore copies fields that are there.
func restore(to, from map[string]any, names ...string) {
	for _, name := range names {
		if value, ok := from[name]; ok {
			to[name] = value
		}
	}
}

// hiddenData returns data with markers for the values of its keys. Malformed data is hidden
// completely.
func hiddenData(value any, encoded bool) any {
	values, ok := value.(map[string]any)
	if !ok {
		return hiddenPrefix + ">"
	}
	hidden := make(map[string]any, len(values))
	for key, value := range values {
		hidden[key] = hiddenPrefix + ">"
		if text, ok := value.(string); ok {
			length := len(text)
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && encoded {
				length = len(decoded)
			}
			hidden[key] = marker(length)
		}
	}
	return hidden
}

// gzipInBase64 begins compressed copies.
const gzipInBase64 = "H4sI"

// copiesData reports whether an annotation may hold a copy of the Secret:
// kubectl's last-applied-configuration, and those that other tools keep for the same purpose.
func copiesData(key, text string) bool {
	name, trimmed := strings.ToLower(key), strings.TrimSpace(text)
	return strings.Contains(name, "applied") || strings.Contains(name, "original") ||
		strings.HasPrefix(text, gzipInBase64) ||
		strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")
}

// markChanged changes the markers of those values that have changed: values of the same length
// have the same marker.
func markChanged(before, after, redacted map[string]any) {
	for _, path := range []string{"data", "stringData", "metadata.annotations", "metadata.labels"} {
		of := func(fields map[string]any) map[string]any {
			value, _, _ := unstructured.NestedFieldNoCopy(fields, strings.Split(path, ".")...)
			values, _ := value.(map[string]any)
			return values
		}
		old, markers := of(before), of(redacted)
		for key, value := range of(after) {
			previous, existed := old[key]
			mark, _ := markers[key].(string)
			if existed && strings.HasPrefix(mark, hiddenPrefix) &&
				!reflect.DeepEqual(previous, value) {
				markers[key] = strings.TrimSuffix(mark, ">") + ", changed>"
			}
		}
	}
}
