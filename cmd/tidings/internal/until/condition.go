package until

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition is a condition of an object. Parse returns one.
type Condition struct {
	text, path string
	gone       bool // the condition is that no object exists

	// Examine reports whether an object, as maps, meets the condition, and describes the values
	// that it has, as in "Ready=False"; "" for a condition of its existence alone.
	Examine func(obj map[string]any) (met bool, found string)
}

// Parse parses a condition.
func Parse(text string) (c Condition, err error) {
	form, rest, _ := strings.Cut(text, "=")
	c.text = text
	switch form = strings.ToLower(form); form {
	case "create", "delete":
		c.gone = form == "delete"
		c.Examine = func(map[string]any) (bool, string) { return !c.gone, "" }
		if rest != "" {
			return c, fmt.Errorf("%q: %s takes no value", text, form)
		}
	case "condition":
		kind, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		if kind == "" || status == "" {
			return c, fmt.Errorf("%q is incomplete: write condition=TYPE or condition=TYPE=STATUS, as in "+
				"condition=Ready", text)
		}
		c.Examine = hasStatus(kind, status)
	case "jsonpath":
		compared, err := parseComparison(rest)
		if err != nil {
			return c, err
		}
		c.path, c.Examine = compared.text, compared.examine
	default:
		return c, fmt.Errorf("%q is no condition: choose condition=TYPE[=STATUS], "+
			"jsonpath=EXPRESSION[=VALUE], create or delete", text)
	}
	return c, nil
}

// String returns the text of the condition.
func (c Condition) String() string { return c.text }

// Path returns the path of a jsonpath, "" for other conditions.
func (c Condition) Path() string { return c.path }

// hasStatus returns an Examine for the status of a condition. A condition that was observed before
// the object's generation does not count.
func hasStatus(kind, want string) func(obj map[string]any) (met bool, found string) {
	number := unstructured.NestedNumberAsFloat64
	return func(obj map[string]any) (met bool, found string) {
		list, _, _ := unstructured.NestedFieldNoCopy(obj, "status", "conditions")
		conditions, _ := list.([]any)
		for _, entry := range conditions {
			c, _ := entry.(map[string]any)
			if is, _ := c["type"].(string); !strings.EqualFold(is, kind) {
				continue
			}
			observed, known, _ := number(c, "observedGeneration")
			if !known {
				observed, known, _ = number(obj, "status", "observedGeneration")
			}
			generation, counted, _ := number(obj, "metadata", "generation")
			status, _ := c["status"].(string)
			if found = kind + "=" + status; counted && known && observed < generation {
				return false, found + " of an earlier generation"
			}
			return strings.EqualFold(status, want), found
		}
		return false, "no condition " + kind
	}
}
