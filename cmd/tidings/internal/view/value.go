package view

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidings-go/tidings/internal/fielddiff"
)

const (
	// absent stands for a field that is not there.
	absent = "(none)"
	// valueWidth is how many characters of a value are shown.
	valueWidth = 40
	// wholeWidth is how many characters of a value are looked at.
	wholeWidth = 2000
)

// plain are strings that are read right without quotes, unless they look like
// another value.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@+<>=-]([A-Za-z0-9_./:@+<>=, -]*[A-Za-z0-9_./:@+<>=-])?$`)

// value shows a value: a plain string without its quotes, and a list or an object
// that is too long by its size. Strings are shortened by brief, which knows the other
// state too.
func value(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) < wholeWidth && plain.MatchString(v) && !json.Valid([]byte(v)) {
			return v
		}
	case []any:
		if text := fielddiff.Format(v, valueWidth); strings.HasSuffix(text, "…") {
			return "[" + Counted(int64(len(v)), "item", "items") + "]"
		}
	case map[string]any:
		if text := fielddiff.Format(v, valueWidth); strings.HasSuffix(text, "…") {
			return "{" + Counted(int64(len(v)), "field", "fields") + "}"
		}
	}
	return Printable(fielddiff.Format(v, wholeWidth))
}

// brief shortens the values before and after, so that what differs stays in sight.
func brief(old, now string) (string, string) {
	if strings.HasPrefix(old, hiddenPrefix) || strings.HasPrefix(now, hiddenPrefix) {
		return old, now
	}
	old, now = withoutSameDay(old, now)
	if utf8.RuneCountInString(old)+utf8.RuneCountInString(now) > valueWidth {
		old, now = withoutSameStart(old, now)
	}
	return shortened(old, valueWidth), shortened(now, valueWidth)
}

// withoutSameDay takes the date off two times of one day.
func withoutSameDay(old, now string) (string, string) {
	before, errBefore := time.Parse(time.RFC3339, old)
	after, errAfter := time.Parse(time.RFC3339, now)
	if errBefore != nil || errAfter != nil || before.Format(time.DateOnly) != after.Format(time.DateOnly) {
		return old, now
	}
	return old[len(time.DateOnly+"T"):], now[len(time.DateOnly+"T"):]
}

// separators end the words of values.
const separators = "/:@ ,;=\n"

// minCut is how many characters are worth taking off.
const minCut = 8

// withoutSameStart takes off the words with which both values begin.
func withoutSameStart(old, now string) (string, string) {
	same := 0
	for same < min(len(old), len(now)) && old[same] == now[same] {
		same++
	}
	cut := strings.LastIndexAny(old[:same], separators)
	if cut <= 0 {
		cut = same - valueWidth/4 // one long word: the end of what both begin with shows where it goes on
	}
	if cut < minCut {
		return old, now
	}
	for cut > 0 && !utf8.RuneStart(old[cut]) {
		cut--
	}
	return "…" + old[cut:], "…" + now[cut:]
}
