package apisim

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// FaultForm describes a fault that [ParseFault] reads.
type FaultForm struct {
	// Text is the form of the fault, such as "refuse=CODE[:RETRY-AFTER]".
	Text string
	// Help describes the effect of the fault, in one sentence without its subject.
	Help string
}

// FaultForms returns the faults that [ParseFault] reads.
func FaultForms() []FaultForm {
	forms := make([]FaultForm, len(faultTexts))
	for i, f := range faultTexts {
		forms[i] = FaultForm{f.form, f.help}
	}
	return forms
}

// ParseFault parses a fault and the match of its requests, for flags and files. The text is a fault
// of [FaultForms], followed by fields of the match, as in
// "refuse=503,verb=list,resource=pods,times=3".
//
// The fields are verb, resource, namespace, name, host, user-agent, page, skip, times, probability,
// and nth for one request. Without a resource, the match selects all requests to any resource, but
// not discovery. Without a verb, it selects watches alone for a fault of watches, and lists alone
// for a fault of lists.
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

// faultTexts are the faults by name, with the default verb of the match. The words of a form are
// the parameters of the function that makes the fault.
var faultTexts = []struct {
	form, help, verb string
	make             any
}{
	{"gone[=TIME]", "ends a watch with 410, at once or after a time such as 10s", "watch", gone},
	{"cut=TIME", "closes the connection of a watch after a time such as 10s", "watch", CutLater},
	{"refuse=CODE[:RETRY-AFTER]", "answers with a status such as 403, or 429:5s", "", Refuse},
	{"refuse-applied=CODE", "carries the request out, and answers with a status such as 504", "",
		RefuseApplied},
	{"apply-later=TIME:CODE", "answers with a status such as 504, and carries a write out after a time",
		"", ApplyLater},
	{"delay=TIME", "answers late", "", Delay},
	{"drop", "closes the connection and does nothing else", "", Drop},
	{"cut-before=N", "carries the request out, and closes the connection before frame N", "", CutBefore},
	{"cut-within=N", "closes the connection within frame N", "", CutWithin},
	{"cut-after=N", "closes the connection after frame N", "", CutAfter},
	{"truncate=N", "ends the answer within frame N", "", Truncate},
	{"garble=N", "sends noise in the place of frame N", "", Garble},
	{"inflate=N:BYTES", "adds bytes without a meaning to frame N", "", Inflate},
	{"duplicate=N", "sends frame N twice", "", Duplicate},
	{"stall=N[:TIME]", "sends nothing from frame N on, for a time or for ever", "watch", Stall},
	{"fail=N:CODE", "ends a watch with an ERROR event in the place of frame N", "watch", Fail},
	{"reorder=N", "sends event N after the next event of another object", "watch", Reorder},
	{"drop-bookmarks", "sends no bookmarks", "watch", DropBookmarks},
	{"lag", "serves the state of the start of the fault", "", Lag},
	{"refuse-streams", "refuses streamed lists", "watch", RefuseStreams},
	{"expire-tokens", "answers that continue tokens are too old", "list", ExpireTokens},
	{"empty-pages", "answers lists with pages without objects", "list", EmptyPages},
	{"repeat-tokens", "answers lists with the same continue token again", "list", RepeatTokens},
}

func gone(d time.Duration) Fault {
	if d == 0 {
		return Fail(0, http.StatusGone)
	}
	return FailLater(d, http.StatusGone)
}

// parseFault parses a fault with its values, and gives the match its default verb.
func parseFault(text string, m *Match) (Fault, error) {
	given, list, hasValues := strings.Cut(text, "=")
	var names, values []string
	if hasValues {
		values = strings.Split(list, ":")
	}
	for _, t := range faultTexts {
		words := strings.FieldsFunc(t.form, isDelimiter)
		if names = append(names, words[0]); words[0] != given {
			continue
		}
		m.Verb = t.verb
		required, _, _ := strings.Cut(t.form, "[")
		args, err := faultArguments(words[1:], len(strings.FieldsFunc(required, isDelimiter))-1, values)
		if err != nil {
			return Fault{}, fmt.Errorf("%w: write %s", err, t.form)
		}
		return reflect.ValueOf(t.make).Call(args)[0].Interface().(Fault), nil
	}
	return Fault{}, fmt.Errorf("no fault has the name %q: the names are %s", given,
		strings.Join(names, ", "))
}

func isDelimiter(r rune) bool { return strings.ContainsRune("[=:]", r) }

// faultArguments parses the values of the words of a form, of which the first required ones need a
// value.
func faultArguments(words []string, required int, values []string) ([]reflect.Value, error) {
	if len(values) > len(words) {
		return nil, fmt.Errorf("%q is too much", strings.Join(values[len(words):], ":"))
	}
	args := make([]reflect.Value, len(words))
	for i, word := range words {
		var arg any = time.Duration(0) // optional values are times
		var err error
		if i < len(values) {
			arg, err = faultArgument(word, values[i])
		} else if i < required {
			err = fmt.Errorf("%s is missing", word)
		}
		if err != nil {
			return nil, err
		}
		args[i] = reflect.ValueOf(arg)
	}
	return args, nil
}

func faultArgument(word, text string) (any, error) {
	if word == "TIME" || word == "RETRY-AFTER" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("%q is not a time such as 10s or 500ms", text)
		}
		return d, nil
	}
	if word == "N" && text == "each" {
		return EachFrame, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 0:
		return nil, fmt.Errorf("%q is not a number", text)
	case word == "CODE" && (n < http.StatusBadRequest || n > 599):
		return nil, fmt.Errorf("%d is not the code of an error, which has 400 to 599", n)
	}
	return n, nil
}
