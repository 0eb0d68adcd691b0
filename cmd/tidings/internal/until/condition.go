package until

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition is a condition of an object. Parse returns one.
type Condition struct {
	text string
	// gone says that no object may exist.
	gone bool
	test test
}

// test examines one object, as maps.
type test interface {
	// met reports whether the object meets the condition.
	met(obj map[string]any) bool
	// found describes what the object has instead; "" if its existence says all.
	found(obj map[string]any) string
}

// existence is create and delete.
type existence bool

func (e existence) met(map[string]any) bool { return bool(e) }

func (e existence) found(map[string]any) string { return "" }

// forms is the hint in errors.
const forms = "choose condition=TYPE[=STATUS], jsonpath=EXPRESSION[=VALUE] (or ==, !=, >=, <=, >, " +
	"<), create or delete"

// Parse parses a condition.
func Parse(text string) (Condition, error) {
	form, rest, _ := strings.Cut(text, "=")
	c := Condition{text: text}
	switch strings.ToLower(form) {
	case "create":
		c.test = existence(true)
	case "delete":
		c.gone, c.test = true, existence(false)
	case "condition":
		kind, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		if kind == "" || status == "" {
			return c, fmt.Errorf("%q is incomplete: write condition=TYPE or "+
				"condition=TYPE=STATUS, as in condition=Ready", text)
		}
		c.test = statusCondition{kind, status}
		return c, nil
	case "jsonpath":
		var err error
		c.test, err = parseComparison(rest)
		return c, err
	default:
		return c, fmt.Errorf("%q is no condition: %s", text, forms)
	}
	if rest != "" {
		return c, fmt.Errorf("%q: %s takes no value", text, form)
	}
	return c, nil
}

// String returns the text of the condition.
func (c Condition) String() string { return c.text }

// Path returns the path of a jsonpath, "" for other conditions.
func (c Condition) Path() string {
	if compared, ok := c.test.(*comparison); ok {
		return compared.text
	}
	return ""
}

// Met reports whether an object, as maps, meets the condition.
func (c Condition) Met(obj map[string]any) bool { return c.test.met(obj) }

// Found describes what an object has in the place of the condition, as in "Ready=False"; "" means
// that its existence says all.
func (c Condition) Found(obj map[string]any) string { return c.test.found(obj) }

// statusCondition is condition=TYPE=STATUS.
type statusCondition struct{ kind, status string }

// find returns the status of the condition of an object, and whether it was observed before the
// object's generation. ok is false without such a condition.
func (s statusCondition) find(obj map[string]any) (status string, outdated, ok bool) {
	number := unstructured.NestedNumberAsFloat64
	found, _, _ := unstructured.NestedFieldNoCopy(obj, "status", "conditions")
	conditions, _ := found.([]any)
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		if is, _ := c["type"].(string); !strings.EqualFold(is, s.kind) {
			continue
		}
		observed, known, _ := number(c, "observedGeneration")
		if !known {
			observed, known, _ = number(obj, "status", "observedGeneration")
		}
		generation, counted, _ := number(obj, "metadata", "generation")
		status, _ = c["status"].(string)
		return status, counted && known && observed < generation, true
	}
	return "", false, false
}

func (s statusCondition) met(obj map[string]any) bool {
	status, outdated, ok := s.find(obj)
	return ok && !outdated && strings.EqualFold(status, s.status)
}

func (s statusCondition) found(obj map[string]any) string {
	status, outdated, ok := s.find(obj)
	switch {
	case !ok:
		return "no condition " + s.kind
	case outdated:
		return fmt.Sprintf("%s=%s of an earlier generation", s.kind, status)
	}
	return s.kind + "=" + status
}
