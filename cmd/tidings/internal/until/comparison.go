package until

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"
)

// operator compares the values of a path; "" is the condition that there is a value.
type operator string

const (
	isText  operator = "="
	equal   operator = "=="
	unequal operator = "!="
	atLeast operator = ">="
	atMost  operator = "<="
	greater operator = ">"
	less    operator = "<"
)

// operators are all operators. Those of two characters come first, as others are prefixes of them.
var operators = []operator{equal, unequal, atLeast, atMost, greater, less, isText}

// comparison is jsonpath=EXPRESSION, with or without an operator and a value.
type comparison struct {
	text     string // of the path
	path     *jsonpath.JSONPath
	operator operator
	want     string
	number   *resource.Quantity // want as a number; nil if it is not one
}

// parseComparison parses a path and, after an operator, its value.
func parseComparison(text string) (*comparison, error) {
	expression, operator, given := cutOperator(text)
	expression, given = strings.TrimSpace(expression), strings.TrimSpace(given)
	// As for kubectl wait, quotes and spaces around a value are not part of it.
	want := strings.TrimSpace(strings.Trim(given, `'"`))
	if strings.Trim(expression, "{}. ") == "" {
		return nil, fmt.Errorf("jsonpath=%s names no field: write it as in "+
			"jsonpath={.status.phase}=Running", text)
	}
	if operator != "" && want == "" {
		return nil, fmt.Errorf("jsonpath=%s has no value after the %s: leave the %[2]s out to "+
			"wait for any value", text, operator)
	}
	if err := checkValue(text, operator, given); err != nil {
		return nil, err
	}
	c := &comparison{operator: operator, want: want, number: numberOf(want)}
	if c.number == nil && c.ordered() {
		return nil, fmt.Errorf("jsonpath=%s: %s compares numbers and quantities, and %q is "+
			"neither: write it as in jsonpath={.status.readyReplicas}>=3", text, operator, want)
	}
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

// checkValue returns an error for a value that begins like an operator or a path.
func checkValue(text string, by operator, value string) error {
	if strings.HasPrefix(value, "{") {
		return fmt.Errorf("jsonpath=%s: the value is a text, not a path: write it as in "+
			"jsonpath={.status.phase}=Running", text)
	}
	rest := strings.TrimLeft(value, "<>= ")
	if rest == value {
		return nil
	}
	signs, meant := string(by)+strings.TrimSuffix(value, rest), equal
	switch more, fewer := strings.Contains(signs, ">"), strings.Contains(signs, "<"); {
	case more && fewer, strings.Contains(signs, "!"):
		meant = unequal
	case more:
		meant = atLeast
	case fewer:
		meant = atMost
	}
	return fmt.Errorf("jsonpath=%s: the value %q begins with an operator: write %s%s", text, value,
		meant, rest)
}

// cutOperator splits an expression and its value at the first operator outside of braces,
// brackets and quotes.
func cutOperator(text string) (expression string, by operator, value string) {
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
		case depth == 0:
			for _, by := range operators {
				if value, ok := strings.CutPrefix(text[i:], string(by)); ok {
					return text[:i], by, value
				}
			}
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
			met = met && c.holds(strings.TrimSpace(value))
		}
	}
	if len(values) == 0 {
		return false, noValue
	}
	return met, ansi.Truncate(strings.Join(values, ", "), maxFound, "…")
}

// ordered reports whether the operator compares numbers only.
func (c *comparison) ordered() bool {
	return slices.Contains([]operator{atLeast, atMost, greater, less}, c.operator)
}

// holds reports whether the comparison is true for a value.
func (c *comparison) holds(value string) bool {
	order, isNumber := cmp.Compare(value, c.want), false
	if c.operator != isText && c.number != nil {
		if number := numberOf(value); number != nil {
			order, isNumber = number.Cmp(*c.number), true
		}
	}
	if c.ordered() && !isNumber {
		return false
	}
	switch c.operator {
	case "":
		return true
	case unequal:
		return order != 0
	case atLeast:
		return order >= 0
	case atMost:
		return order <= 0
	case greater:
		return order > 0
	case less:
		return order < 0
	}
	return order == 0
}

// maxNumber and maxExponent bound the length of a number and of its exponent. The time to compare
// two quantities grows with the difference of their exponents.
const maxNumber, maxExponent = 64, 3

// numberOf returns a number or a quantity, such as 3, 0.5, 250m or 1Gi; nil for other texts.
func numberOf(text string) *resource.Quantity {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if len(text) > maxNumber || len(strings.TrimLeft(exponent, "+-")) > maxExponent {
		return nil
	}
	number, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	return &number
}
