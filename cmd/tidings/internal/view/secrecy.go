package view

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/source"
)

// Secrecy hides the data of Secrets. Its zero value hides it.
type Secrecy struct {
	// Show leaves all changes and errors unchanged.
	Show bool
}

// hiddenPrefix is the prefix of the markers in the place of hidden values.
const hiddenPrefix = "<hidden"

var (
	// shownOfSecrets are the fields of a Secret that are shown. None of them repeats its data.
	shownOfSecrets = []string{
		"type", "immutable", "metadata.name", "metadata.namespace", "metadata.uid",
		"metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp",
		"metadata.deletionTimestamp",
	}
	// hiddenOfSecrets are the fields whose keys are shown, with markers for the values. Tools keep
	// copies of the data in annotations.
	hiddenOfSecrets = []string{"data", "stringData", "metadata.labels", "metadata.annotations"}
)

// Apply returns the change with copies of its objects in which the data of Secrets is hidden. The
// markers of values that changed between the two states differ.
func (s Secrecy) Apply(c Change) Change {
	if s.Show || !dedup.IsSecret(c.Of.Kind.Group, c.Of.Plural, c.Of.Kind.Kind) {
		return c
	}
	old, now := c.Old, c.New
	if old != nil {
		c.Old = redacted(old, nil, c.Of)
	}
	if now != nil {
		c.New = redacted(now, old, c.Of)
	}
	return c
}

// redacted returns the part of a Secret that is shown. before is the state before; it may be nil.
func redacted(obj, before tidings.Object, of Type) *unstructured.Unstructured {
	fields, old := Fields(obj), map[string]any(nil)
	if before != nil {
		old = Fields(before)
	}
	shown := &unstructured.Unstructured{Object: make(map[string]any)}
	shown.SetGroupVersionKind(of.Kind)
	set := func(path []string, value any) {
		// The parents are maps: nothing but maps is set above.
		unstructured.SetNestedField(shown.Object, value, path...) //nolint:errcheck // see above
	}
	for _, field := range shownOfSecrets {
		path := strings.Split(field, ".")
		if value, ok, _ := unstructured.NestedFieldNoCopy(fields, path...); ok {
			set(path, value)
		}
	}
	for _, field := range hiddenOfSecrets {
		path := strings.Split(field, ".")
		if value, ok, _ := unstructured.NestedFieldNoCopy(fields, path...); ok && value != nil {
			previous, _, _ := unstructured.NestedFieldNoCopy(old, path...)
			set(path, markers(value, previous, field == "data"))
		}
	}
	return shown
}

// markers returns a map with markers for its values. A marker shows whether the value differs from
// the one in the previous map. Anything but a map is hidden completely.
func markers(value, previous any, encoded bool) any {
	values, ok := value.(map[string]any)
	if !ok {
		return hiddenPrefix + ">"
	}
	before, _ := previous.(map[string]any)
	hidden := make(map[string]any, len(values))
	for key, value := range values {
		marker := hiddenPrefix
		if text, ok := value.(string); ok {
			length := len(text)
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && encoded {
				length = len(decoded)
			}
			marker += ", " + format.Counted(length, "byte", "bytes")
		}
		if old, ok := before[key]; ok && !reflect.DeepEqual(old, value) {
			marker += ", changed"
		}
		hidden[key] = marker + ">"
	}
	return hidden
}

// errRedacted replaces an error that may quote a Secret.
var errRedacted = errors.New("the server's answer cannot be decoded (not quoted: it may be the " +
	"data of a Secret)")

// Error returns an error that does not quote the server's answer if the answer may be a Secret.
func (s Secrecy) Error(err error) error {
	sourceErr, ok := errors.AsType[*source.Error](err)
	if s.Show || !ok || sourceErr.Phase != source.Decoding && sourceErr.Phase != source.Streaming {
		return err
	}
	parts := append(strings.SplitN(sourceErr.Resource, ".", 3), "", "") // name, version, group
	if !dedup.IsSecret(parts[2], parts[0], parts[0]) {
		return err
	}
	hidden := *sourceErr
	hidden.Err = errRedacted
	return &hidden
}
