package until

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/client-go/util/jsonpath"
)

// comparison is jsonpath=EXPRESSION, with or without =VALUE.
type comparison struct {
	text     string // of the path
	path     *jsonpath.JSONPath
	hasValue bool
	want     string
}

// parseComparison parses a path and, after a =, its value.
func parseComparison(text string) (*comparison, error) {
	expression, operator, given := cutOperator(text)
	expression, given = strings.TrimSpace(expression), strings.TrimSpace(given)
	// As for kubectl wait, quotes and spaces around a value are not part of it.
	want := strings.TrimSpace(strings.Trim(given, `'"`))
	if strings.Trim(expression, "{}. ") == "" {
		return nil, fmt.Errorf("jsonpath=%s names no field: write it as in "+
			"jsonpath={.status.phase}=Running", text)
	}
	if operator == "=" && want == "" {
		return nil, fmt.Errorf("jsonpath=%s has no value after the =: leave the = out to "+
			"wait for any value", text)
	}
	if operator != "" && operator != "=" || strings.ContainsAny(given[:min(1, len(given))], "=<>{") {
		return nil, fmt.Errorf("jsonpath=%s: the only comparison is with a text after one =: write it as in "+
			"jsonpath={.status.phase}=Running", text)
	}
	c := &comparison{hasValue: operator != "", want: want}
	if strings.ContainsAny(expression[:1], `'"`) {
		return nil, fmt.Errorf("jsonpath=%s: the path is in quotes: leave out the inner quotes",
			text)
	}
	if !strings.HasPrefix(expression, "{") {
		expression = "{." + strings.TrimPrefix(expression, ".") + "}"
	}
	c.text = expression
	c.path = jsonpath.New("until").AllowMissingKeys(true)
	if err := c.path.Parse(expression); err != nil {
		if strings.Count(expression, "{") > strings.Count(expression, "}") {
			err = errors.New("a } is missing")
		}
		return nil, fmt.Errorf("jsonpath=%s cannot be read: %w: write it as in "+
			"jsonpath={.status.phase}=Running", text, err)
	}
	return c, nil
}

// cutOperator splits an expression and its value at the first of =, !, < and > outside of braces,
// brackets and quotes.
func cutOperator(text string) (expression, operator, value string) {
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
		case depth == 0 && strings.ContainsRune("=!<>", r):
			return text[:i], text[i : i+1], text[i+1:]
		}
	}
	return text, "", ""
}

// noValue is the description of an object without a value at the path.
const noValue = "no value"

// maxFound bounds the length of a description in characters.
const maxFound = 60

func (c *comparison) examine(obj map[string]any) (met bool, found string) {
	results, err := c.path.FindResults(obj)
	if err != nil {
		return false, noValue // for example, an index past the end of a list
	}
	var values []string
	met = true
	for _, result := range slices.Concat(results...) {
		if result.IsValid() && result.CanInterface() && result.Interface() != nil {
			value := fmt.Sprint(result.Interface())
			values = append(values, value)
			met = met && (!c.hasValue || strings.TrimSpace(value) == c.want)
		}
	}
	if len(values) == 0 {
		return false, noValue
	}
	return met, ansi.Truncate(strings.Join(values, ", "), maxFound, "…")
}
