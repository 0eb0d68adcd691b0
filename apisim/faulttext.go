package apisim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FaultForm describes a fault that [ParseFault] reads.
type FaultForm struct {
	// Text is the form of the fault, such as "refuse=CODE[:RETRY-AFTER]".
	Text string
	// Help says what the fault does, in one sentence without its subject.
	Help string
}

// FaultForms returns the faults that [ParseFault] reads.
func FaultForms() []FaultForm {
	forms := make([]FaultForm, len(faultTexts))
	for i, f := range faultTexts {
		forms[i] = FaultForm{f.name + f.values, f.help}
	}
	return forms
}

// ParseFault reads a fault and the requests that meet it from a text, for flags and files:
// a fault of [FaultForms], and then fields of the match, as in
// "refuse=503,verb=list,resource=pods,times=3".
//
// The fields are verb, resource, namespace, name, host, user-agent, page, skip, times,
// probability, and nth for one request. Without a resource, all requests to any resource
// meet the fault, and discovery goes on. Without a verb, faults of watches are met by
// watches only.
func ParseFault(text string) (Match, Fault, error) {
	first, rest, more := strings.Cut(text, ",")
	m := Match{Resource: "*"}
	f, err := parseFault(first, &m)
	for more && err == nil {
		first, rest, more = strings.Cut(rest, ",")
		err = m.parseField(first)
	}
	if err != nil {
		return Match{}, Fault{}, fmt.Errorf("apisim: the fault %q: %w", text, err)
	}
	return m, f, nil
}

// faultText is a fault by name.
type faultText struct {
	name, values, help string
	verb               string // of the requests that meet the fault, if no other is given
	read               func(v *faultValues) Fault
}

var faultTexts = []faultText{
	{"gone", "[=TIME]", "ends a watch with 410, at once or after a time such as 10s", "watch",
		func(v *faultValues) Fault {
			if len(v.rest) == 0 {
				return Fail(0, http.StatusGone)
			}
			return FailLater(v.duration(), http.StatusGone)
		}},
	{"cut", "=TIME", "closes the connection of a watch after a time such as 10s", "watch",
		func(v *faultValues) Fault { return CutLater(v.duration()) }},
	{"refuse", "=CODE[:RETRY-AFTER]", "answers with a status such as 403, or 429:5s", "",
		func(v *faultValues) Fault { return Refuse(v.code(), v.optionalDuration()) }},
	{"refuse-applied", "=CODE", "carries the request out, and answers with a status such as 504",
		"", func(v *faultValues) Fault { return RefuseApplied(v.code()) }},
	{"apply-later", "=TIME:CODE", "answers with a status such as 504, and carries a write out " +
		"after a time", "",
		func(v *faultValues) Fault { return ApplyLater(v.duration(), v.code()) }},
	{"delay", "=TIME", "answers late", "",
		func(v *faultValues) Fault { return Delay(v.duration()) }},
	{"drop", "", "closes the connection and does nothing else", "",
		func(*faultValues) Fault { return Drop() }},
	{"cut-before", "=N", "carries the request out, and closes the connection before frame N",
		"", func(v *faultValues) Fault { return CutBefore(v.frame()) }},
	{"cut-within", "=N", "closes the connection within frame N", "",
		func(v *faultValues) Fault { return CutWithin(v.frame()) }},
	{"cut-after", "=N", "closes the connection after frame N", "",
		func(v *faultValues) Fault { return CutAfter(v.frame()) }},
	{"truncate", "=N", "ends the answer within frame N", "",
		func(v *faultValues) Fault { return Truncate(v.frame()) }},
	{"garble", "=N", "sends noise in the place of frame N", "",
		func(v *faultValues) Fault { return Garble(v.frame()) }},
	{"inflate", "=N:BYTES", "adds bytes without a meaning to frame N", "",
		func(v *faultValues) Fault { return Inflate(v.frame(), v.number("BYTES")) }},
	{"duplicate", "=N", "sends frame N twice", "",
		func(v *faultValues) Fault { return Duplicate(v.frame()) }},
	{"stall", "=N[:TIME]", "sends nothing from frame N on, for a time or for ever", "watch",
		func(v *faultValues) Fault { return Stall(v.frame(), v.optionalDuration()) }},
	{"fail", "=N:CODE", "ends a watch with an ERROR event in the place of frame N", "watch",
		func(v *faultValues) Fault { return Fail(v.frame(), v.code()) }},
	{"reorder", "=N", "sends event N after the next event of another object", "watch",
		func(v *faultValues) Fault { return Reorder(v.frame()) }},
	{"drop-bookmarks", "", "sends no bookmarks", "watch",
		func(*faultValues) Fault { return DropBookmarks() }},
	{"lag", "", "serves the state of the start of the fault", "",
		func(*faultValues) Fault { return Lag() }},
	{"refuse-streams", "", "refuses streamed lists", "watch",
		func(*faultValues) Fault { return RefuseStreams() }},
	{"expire-tokens", "", "answers that continue tokens are too old", "list",
		func(*faultValues) Fault { return ExpireTokens() }},
	{"empty-pages", "", "answers lists with pages without objects", "list",
		func(*faultValues) Fault { return EmptyPages() }},
	{"repeat-tokens", "", "answers lists with the same continue token again", "list",
		func(*faultValues) Fault { return RepeatTokens() }},
}

// parseFault reads a fault with its values, and gives the match its default verb.
func parseFault(text string, m *Match) (Fault, error) {
	name, given, hasValue := strings.Cut(text, "=")
	names := make([]string, len(faultTexts))
	for i, t := range faultTexts {
		names[i] = t.name
		if t.name != name {
			continue
		}
		m.Verb = t.verb
		v := &faultValues{}
		if hasValue {
			v.rest = strings.Split(given, ":")
		}
		f := t.read(v)
		if v.err == nil && len(v.rest) > 0 {
			v.fail("%q is too much", strings.Join(v.rest, ":"))
		}
		if v.err != nil {
			return Fault{}, fmt.Errorf("%w: write %s%s", v.err, t.name, t.values)
		}
		return f, nil
	}
	return Fault{}, fmt.Errorf("no fault has the name %q: the names are %s", name,
		strings.Join(names, ", "))
}

// Verbs returns the verbs of requests to resources, as matches and rules name them.
func Verbs() []string {
	return []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
	}
}

// parseField reads one field of a match.
func (m *Match) parseField(text string) error {
	key, value, _ := strings.Cut(text, "=")
	texts := map[string]*string{
		"verb": &m.Verb, "resource": &m.Resource, "namespace": &m.Namespace, "name": &m.Name,
		"host": &m.Host, "user-agent": &m.UserAgent,
	}
	if field, ok := texts[key]; ok {
		if *field = value; value == "" {
			return fmt.Errorf("%s has no value: write %s=VALUE", key, key)
		}
		if key == "verb" && !slices.Contains(Verbs(), value) {
			return fmt.Errorf("there is no verb %q: the verbs are %s", value,
				strings.Join(Verbs(), ", "))
		}
		return nil
	}
	if key == "probability" {
		chance, err := strconv.ParseFloat(value, 64)
		if m.Probability = chance; err != nil || !(chance > 0 && chance <= 1) {
			return fmt.Errorf("the probability is %q: give a number over 0, up to 1", value)
		}
		return nil
	}
	var nth int
	numbers := map[string]*int{"page": &m.Page, "skip": &m.Skip, "times": &m.Times, "nth": &nth}
	field, ok := numbers[key]
	if !ok {
		return fmt.Errorf("no field has the name %q: the fields are verb, resource, namespace, "+
			"name, host, user-agent, page, skip, times, nth, probability", key)
	}
	count, err := strconv.Atoi(value)
	if err != nil || count < 1 {
		return fmt.Errorf("%s is %q: give a number of 1 or more", key, value)
	}
	if *field = count; key == "nth" {
		*m = m.Nth(nth)
	}
	return nil
}

// faultValues are the values of a fault, which are read one after the other. The first
// error stays.
type faultValues struct {
	rest []string
	err  error
}

func (v *faultValues) fail(format string, args ...any) {
	v.err = cmp.Or(v.err, fmt.Errorf(format, args...))
}

func (v *faultValues) next(what string) string {
	if len(v.rest) == 0 {
		v.fail("%s is missing", what)
		return ""
	}
	value := v.rest[0]
	v.rest = v.rest[1:]
	return value
}

func (v *faultValues) number(what string) int {
	value := v.next(what)
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		v.fail("%q is not a number", value)
	}
	return n
}

func (v *faultValues) frame() int {
	if len(v.rest) > 0 && v.rest[0] == "each" {
		v.next("N")
		return EachFrame
	}
	return v.number("N")
}

func (v *faultValues) code() int {
	code := v.number("CODE")
	if code < http.StatusBadRequest || code > 599 {
		v.fail("%d is not the code of an error, which has 400 to 599", code)
	}
	return code
}

func (v *faultValues) duration() time.Duration {
	value := v.next("TIME")
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		v.fail("%q is not a time such as 10s or 500ms", value)
	}
	return d
}

// optionalDuration returns 0 if there is no value.
func (v *faultValues) optionalDuration() time.Duration {
	if len(v.rest) == 0 {
		return 0
	}
	return v.duration()
}
