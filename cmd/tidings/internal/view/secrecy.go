package view

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/source"
)

// Secrecy replaces what must not be shown: the data of Secrets, and the annotations
// of Secrets in which tools keep a copy of it. Its zero value hides.
type Secrecy struct {
	// Show leaves everything as it is.
	Show bool
}

var secretKind = schema.GroupKind{Kind: "Secret"}

// hides reports whether objects of a type have something to hide.
func (s Secrecy) hides(of Type) bool { return !s.Show && of.Kind.GroupKind() == secretKind }

// Apply returns the change with what must not be shown replaced in copies of its
// objects. What differs between the states before and after still differs.
func (s Secrecy) Apply(c Change) Change {
	if !s.hides(c.Of) {
		return c
	}
	before, after := hidden(c.Old, c.Of), hidden(c.New, c.Of)
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

// secretResource begins the name of the resource in errors about Secrets.
const secretResource = "secrets."

// Error returns an error that does not quote what the server sent where that may have
// been the data of a Secret.
func (s Secrecy) Error(err error) error {
	sourceErr, ok := errors.AsType[*source.Error](err)
	if s.Show || !ok || !strings.HasPrefix(sourceErr.Resource, secretResource) {
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

// hidden returns a copy of a Secret without its data, nil for no object.
func hidden(obj tidings.Object, of Type) *unstructured.Unstructured {
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
			copied[name] = hiddenMetadata(value, fields)
		default:
			copied[name] = value
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

// hiddenMetadata replaces the annotations that hold a copy of the data.
func hiddenMetadata(value any, secret map[string]any) any {
	metadata, ok := value.(map[string]any)
	if !ok {
		return value
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return value
	}
	values := secretValues(secret)
	replaced := make(map[string]any, len(annotations))
	for key, value := range annotations {
		text, ok := value.(string)
		if !ok || copiesData(key, text, values) {
			value = marker(len(text))
		}
		replaced[key] = value
	}
	copied := make(map[string]any, len(metadata))
	maps.Copy(copied, metadata)
	copied["annotations"] = replaced
	return copied
}

// gzipInBase64 is how compressed copies begin.
const gzipInBase64 = "H4sI"

// copiesData reports whether an annotation may hold what the Secret holds: kubectl's
// last-applied-configuration, what other tools keep for the same purpose, and
// anything in which a value of the Secret occurs.
func copiesData(key, text string, values []string) bool {
	name := strings.ToLower(key)
	if strings.Contains(name, "applied") || strings.Contains(name, "original") || strings.HasPrefix(text, gzipInBase64) {
		return true
	}
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		return true
	}
	for _, value := range values {
		if strings.Contains(text, value) {
			return true
		}
	}
	return false
}

// minSecretLength is how long a value must be for its occurrence elsewhere to mean
// something.
const minSecretLength = 4

// secretValues returns the values of a Secret, as they are stored and decoded.
func secretValues(secret map[string]any) []string {
	var values []string
	for _, field := range []string{"data", "stringData"} {
		data, _ := secret[field].(map[string]any)
		for _, value := range data {
			text, _ := value.(string)
			if len(text) >= minSecretLength {
				values = append(values, text)
			}
			decoded, err := base64.StdEncoding.DecodeString(text)
			if decoded = bytes.TrimSpace(decoded); err == nil && len(decoded) >= minSecretLength {
				values = append(values, string(decoded))
			}
		}
	}
	return values
}

// markChanged adds to the markers of after those values that changed and kept their
// length: the markers alone would look the same.
func markChanged(before, after, shown map[string]any) {
	for _, path := range [][]string{{"data"}, {"stringData"}, {"metadata", "annotations"}} {
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
