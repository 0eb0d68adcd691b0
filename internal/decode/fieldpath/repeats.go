package fieldpath

import (
	"encoding/json"
	"strings"
)

// RepeatsObject reports whether a text is an object in JSON, as the annotation of kubectl apply
// is, or a list with one.
func RepeatsObject(text string) bool {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "{"):
		text = "[" + text + "]"
	case !strings.HasPrefix(text, "["):
		return false
	}
	var objects []struct{ Metadata, Data, StringData, Items json.RawMessage }
	json.Unmarshal([]byte(text), &objects) //nolint:errcheck // elements that are no objects stay empty
	for _, o := range objects {
		if o.Metadata != nil || o.Data != nil || o.StringData != nil || o.Items != nil {
			return true
		}
	}
	return false
}
