package view

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/dedup"
	"github.com/tidings-go/tidings/source"
)

// Secrecy replaces what must not be shown: the data of Secrets, the annotations of Secrets
// in which tools keep a copy of it, and whatever else of them repeats it. Its zero value hides.
type Secrecy struct {
	// Show leaves everything as it is.
	Show bool
}

// hides reports whether objects of a type have something to hide.
func (s Secrecy) hides(of Type) bool {
	return !s.Show && dedup.IsSecret(of.Kind.Group, of.Plural, of.Kind.Kind)
}

// Apply returns the change with what must not be shown replaced in copies of its
// objects. What differs between the states before and after still differs.
func (s Secrecy) Apply(c Change) Change {
	if !s.hides(c.Of) {
		return c
	}
	var values []string // of both states: one may repeat what the other holds
	for _, obj := range []tidings.Object{c.Old, c.New} {
		if obj != nil {
			values = append(values, secretValues(Fields(obj))...)
		}
	}
	before, after := hidden(c.Old, c.Of, values), hidden(c.New, c.Of, values)
	if before != nil && after != nil {
		markChanged(Fields(c.Old), Fields(c.New), after.Object)
	}
	c.Old, c.New = nil, nil
	if before != nil {
		c.Old = before
	}
	if after != nil {
		c.New = after
	}
	return c
}

// Error returns an error that does not quote what the server sent where that may have
// been the data of a Secret.
func (s Secrecy) Error(err error) error {
	sourceErr, ok := errors.AsType[*source.Error](err)
	if s.Show || !ok {
		return err
	}
	parts := append(strings.SplitN(sourceErr.Resource, ".", 3), "", "") // name, version, group
	if !dedup.IsSecret(parts[2], parts[0], parts[0]) {
		return err
	}
	if sourceErr.Phase != source.Decoding && sourceErr.Phase != source.Streaming {
		return err
	}
	redacted := *sourceErr
	redacted.Err = errRedacted
	return &redacted
}

// errRedacted stands for an error that may quote a Secret.
var errRedacted = errors.New("what the server sent could not be understood (not quoted: it may be the data of a Secret)")

// hidden returns a copy of a Secret without its data, and without what repeats one of the
// values; nil for no object.
func hidden(obj tidings.Object, of Type, values []string) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	fields := Fields(obj)
	copied := make(map[string]any, len(fields))
	for name, value := range fields {
		switch name {
		case "data":
			copied[name] = hiddenValues(value, decodedLength)
		case "stringData":
			copied[name] = hiddenValues(value, plainLength)
		case "metadata":
			copied[name] = hiddenMetadata(value, values)
		case "apiVersion", "kind":
			copied[name] = value
		default:
			copied[hiddenKey(name, values)] = withoutValues(value, values)
		}
	}
	u := &unstructured.Unstructured{Object: copied}
	if u.GetKind() == "" {
		u.SetGroupVersionKind(of.Kind)
	}
	return u
}

// hiddenPrefix begins all that stands for what is hidden.
const hiddenPrefix = "<hidden"

// marker is what stands for a value of so many bytes.
func marker(length int) string {
	if length == 1 {
		return "<hidden, 1 byte>"
	}
	return fmt.Sprintf("<hidden, %d bytes>", length)
}

func plainLength(value string) int { return len(value) }

func decodedLength(value string) int {
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return len(value)
	}
	return len(decoded)
}

// hiddenValues replaces the values of a map; the keys stay. Anything that is not a
// map of strings is replaced whole.
func hiddenValues(value any, length func(string) int) any {
	values, ok := value.(map[string]any)
	if !ok {
		if value == nil {
			return nil
		}
		return "<hidden>"
	}
	replaced := make(map[string]any, len(values))
	for key, value := range values {
		if text, ok := value.(string); ok {
			replaced[key] = marker(length(text))
		} else {
			replaced[key] = "<hidden>"
		}
	}
	return replaced
}

// hiddenMetadata replaces the annotations that hold a copy of the data, and whatever repeats
// a value of it but for what every message names.
func hiddenMetadata(value any, values []string) any {
	metadata, ok := value.(map[string]any)
	if !ok {
		return withoutValues(value, values)
	}
	copied := make(map[string]any, len(metadata))
	for name, field := range metadata {
		switch name {
		case "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation":
			copied[name] = field
		case "annotations":
			copied[name] = hiddenAnnotations(field, values)
		default:
			copied[hiddenKey(name, values)] = withoutValues(field, values)
		}
	}
	return copied
}

func hiddenAnnotations(value any, values []string) any {
	annotations, ok := value.(map[string]any)
	if !ok {
		return withoutValues(value, values)
	}
	replaced := make(map[string]any, len(annotations))
	for key, value := range annotations {
		text, ok := value.(string)
		if !ok || copiesData(key, text) || repeats(text, values) {
			value = marker(len(text))
		}
		replaced[hiddenKey(key, values)] = value
	}
	return replaced
}

// withoutValues returns a copy of a value in which the strings that repeat a value of a Secret
// are replaced.
func withoutValues(value any, values []string) any {
	switch v := value.(type) {
	case string:
		if repeats(v, values) {
			return marker(len(v))
		}
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, field := range v {
			copied[hiddenKey(key, values)] = withoutValues(field, values)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = withoutValues(v[i], values)
		}
		return copied
	}
	return value
}

func hiddenKey(key string, values []string) string {
	if repeats(key, values) {
		return marker(len(key))
	}
	return key
}

// gzipInBase64 is how compressed copies begin.
const gzipInBase64 = "H4sI"

// copiesData reports whether an annotation may hold what the Secret holds, by its form:
// kubectl's last-applied-configuration, and what other tools keep for the same purpose.
func copiesData(key, text string) bool {
	name := strings.ToLower(key)
	if strings.Contains(name, "applied") || strings.Contains(name, "original") || strings.HasPrefix(text, gzipInBase64) {
		return true
	}
	trimmed := strings.TrimSpace(text)
	return strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")
}

const (
	// minSecretLength is how long a value must be for its occurrence in a text to mean
	// something. A shorter one is repeated by a text that is the value.
	minSecretLength = 4
	// minPartLength is how long a text must be to be a part of a value that means something.
	minPartLength = 8
)

// repeats reports whether a text has a value of a Secret in it, or is a part of one.
func repeats(text string, values []string) bool {
	for _, value := range values {
		if text == value || len(value) >= minSecretLength && strings.Contains(text, value) ||
			len(text) >= minPartLength && strings.Contains(value, text) {
			return true
		}
	}
	return false
}

// secretValues returns the values of a Secret, also one that is malformed, as they are stored
// and decoded.
func secretValues(secret map[string]any) []string {
	return append(textsIn(secret["data"]), textsIn(secret["stringData"])...)
}

// textsIn returns the strings and numbers in a value, each as it is and in base64, or out of it.
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
		texts = append(texts, strings.TrimRight(v, "="))
		content, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			content = []byte(v)
		}
		texts = append(texts, string(bytes.TrimSpace(content)), base64.RawURLEncoding.EncodeToString(content), base64.RawStdEncoding.EncodeToString(content))
	case int64, float64:
		texts = append(texts, fmt.Sprint(v))
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// markChanged adds to the markers of after those values that changed and kept their
// length: the markers alone would look the same.
func markChanged(before, after, shown map[string]any) {
	for _, path := range [][]string{{"data"}, {"stringData"}, {"metadata", "annotations"}, {"metadata", "labels"}} {
		old, _, _ := unstructured.NestedFieldNoCopy(before, path...)
		now, _, _ := unstructured.NestedFieldNoCopy(after, path...)
		target, _, _ := unstructured.NestedFieldNoCopy(shown, path...)
		oldValues, _ := old.(map[string]any)
		newValues, _ := now.(map[string]any)
		markers, _ := target.(map[string]any)
		for key, value := range newValues {
			previous, existed := oldValues[key]
			mark, _ := markers[key].(string)
			if existed && strings.HasPrefix(mark, hiddenPrefix) && !reflect.DeepEqual(previous, value) {
				markers[key] = strings.TrimSuffix(mark, ">") + ", changed>"
			}
		}
	}
}
