package until

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// Condition is a condition of an object. Parse returns one.
type Condition struct {
	text string
	// gone says that no object may exist.
	gone bool
	// meets reports whether an object meets the condition.
	meets func(map[string]any) bool
}

// forms is the hint in errors.
const forms = "choose condition=TYPE[=STATUS], jsonpath=EXPRESSION[=VALUE], create or delete"

// Parse parses a condition.
func Parse(text string) (Condition, error) {
	form, rest, _ := strings.Cut(text, "=")
	c := Condition{text: text}
	switch strings.ToLower(form) {
	case "create":
		c.meets = func(map[string]any) bool { return true }
	case "delete":
		c.gone, c.meets = true, func(map[string]any) bool { return false }
	case "condition":
		kind, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		if kind == "" || status == "" {
			return c, fmt.Errorf("%q is incomplete: write condition=TYPE or "+
				"condition=TYPE=STATUS, as in condition=Ready", text)
		}
		c.meets = func(obj map[string]any) bool { return hasCondition(obj, kind, status) }
		return c, nil
	case "jsonpath":
		var err error
		c.meets, err = parsePath(rest)
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

// Met reports whether an object, as maps, meets the condition.
func (c Condition) Met(obj map[string]any) bool { return c.meets(obj) }

// hasCondition reports whether a condition of an object has a status and was observed at the
// object's generation.
func hasCondition(obj map[string]any, kind, status string) bool {
	number := unstructured.NestedNumberAsFloat64
	found, _, _ := unstructured.NestedFieldNoCopy(obj, "status", "conditions")
	conditions, _ := found.([]any)
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		if is, _ := c["type"].(string); !strings.EqualFold(is, kind) {
			continue
		}
		observed, known, _ := number(c, "observedGeneration")
		if !known {
			observed, known, _ = number(obj, "status", "observedGeneration")
		}
		if generation, ok, _ := number(obj, "metadata", "generation"); ok && known &&
			observed < generation {
			return false
		}
		is, _ := c["status"].(string)
		return strings.EqualFold(is, status)
	}
	return false
}

// parsePath parses a path and, after an =, its value.
func parsePath(text string) (func(map[string]any) bool, error) {
	expression, want, valued := cutValue(text)
	if strings.Trim(expression, "{}. ") == "" {
		return nil, fmt.Errorf("jsonpath=%s names no field: write it as in "+
			"jsonpath={.status.phase}=Running", text)
	}
	if valued && want == "" {
		return nil, fmt.Errorf("jsonpath=%s has no value after the last =: leave the = out to "+
			"wait for any value", text)
	}
	if !strings.HasPrefix(expression, "{") {
		expression = "{." + strings.TrimPrefix(expression, ".") + "}"
	}
	path := jsonpath.New("until").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return nil, fmt.Errorf("jsonpath=%s cannot be read: %w: write it as in "+
			"jsonpath={.status.phase}=Running", text, err)
	}
	return func(obj map[string]any) bool {
		found, err := path.FindResults(obj)
		if err != nil {
			return false // a path that leads nowhere in this object, as an index past the end
		}
		some := false
		for _, results := range found {
			for _, result := range results {
				if !result.IsValid() || !result.CanInterface() || result.Interface() == nil {
					continue
				}
				if valued && fmt.Sprint(result.Interface()) != want {
					return false
				}
				some = true
			}
		}
		return some
	}, nil
}

// cutValue splits EXPRESSION=VALUE at the first = outside of braces, brackets and quotes.
func cutValue(text string) (expression, value string, valued bool) {
	depth := 0
	var quote rune
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case strings.ContainsRune("{[(", r):
			depth++
		case strings.ContainsRune("}])", r):
			depth--
		case r == '=' && depth == 0:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}
