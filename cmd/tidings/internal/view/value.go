package view

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/tidings-go/tidings/internal/see/fielddiff"
	"github.com/tidings-go/tidings/internal/see/format"
)

const (
	// absent stands for a missing field.
	absent = "(none)"
	// valueWidth is the number of characters of a value that are shown.
	valueWidth = 40
	// maxValue is the number of characters of a value that are read.
	maxValue = 2000
)

// plain matches strings that need no quotes, unless they look like a value of another type.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@+<>=-]([A-Za-z0-9_./:@+<>=, -]*[A-Za-z0-9_./:@+<>=-])?$`)

// value formats a value: a plain string without quotes, and a long list or object by its size.
// brief shortens other long values, as it knows both states.
func value(v any) string {
	long := func() bool { return strings.HasSuffix(fielddiff.Format(v, valueWidth), "…") }
	switch v := v.(type) {
	case string:
		if len(v) < maxValue && plain.MatchString(v) && !json.Valid([]byte(v)) {
			return v
		}
	case []any:
		if long() {
			return "[" + format.Counted(len(v), "item", "items") + "]"
		}
	case map[string]any:
		if long() {
			return "{" + format.Counted(len(v), "field", "fields") + "}"
		}
	}
	return Printable(fielddiff.Format(v, maxValue))
}

// brief shortens the values before and after so that their difference remains visible.
func brief(old, now string) (string, string) {
	if strings.HasPrefix(old, hiddenPrefix) || strings.HasPrefix(now, hiddenPrefix) {
		return old, now
	}
	if ansi.StringWidth(old+now) > valueWidth {
		old, now = withoutSamePrefix(old, now)
	}
	return shortened(old, valueWidth), shortened(now, valueWidth)
}

const (
	// wordEnds are the characters between the words of a value.
	wordEnds = "/:@ ,;=\n"
	// minRemoved is the smallest number of characters that are removed.
	minRemoved = 8
)

// withoutSamePrefix removes the words with which both values begin.
func withoutSamePrefix(old, now string) (string, string) {
	same := 0
	for same < min(len(old), len(now)) && old[same] == now[same] {
		same++
	}
	cut := strings.LastIndexAny(old[:same], wordEnds)
	if cut <= 0 {
		cut = same - valueWidth/4 // one long word: the end of the common prefix remains
	}
	if cut < minRemoved {
		return old, now
	}
	for cut > 0 && !utf8.RuneStart(old[cut]) {
		cut--
	}
	return "…" + old[cut:], "…" + now[cut:]
}

// differingLines compares two texts line by line. It returns the number of the first line that
// differs, and the differing lines of both texts. It is ok only if one of the texts has several
// lines and the texts have lines in common; otherwise the whole texts are more informative.
func differingLines(old, now any) (line int, before, after string, ok bool) {
	a, aIsText := old.(string)
	b, bIsText := now.(string)
	multiline := func(text string) bool {
		return strings.Contains(strings.TrimSuffix(text, "\n"), "\n")
	}
	if !aIsText || !bIsText || !multiline(a) && !multiline(b) {
		return 0, "", "", false
	}
	if strings.HasSuffix(a, "\n") && strings.HasSuffix(b, "\n") {
		a, b = strings.TrimSuffix(a, "\n"), strings.TrimSuffix(b, "\n")
	}
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	all := len(as) + len(bs)
	for line = 1; len(as) > 0 && len(bs) > 0 && as[0] == bs[0]; line++ {
		as, bs = as[1:], bs[1:]
	}
	for len(as) > 0 && len(bs) > 0 && as[len(as)-1] == bs[len(bs)-1] {
		as, bs = as[:len(as)-1], bs[:len(bs)-1]
	}
	indent := min(indentOf(as), indentOf(bs))
	return line, linesValue(as, indent), linesValue(bs, indent), len(as)+len(bs) < all
}

func indentOf(lines []string) int {
	if len(lines) == 0 {
		return maxValue
	}
	return len(lines[0]) - len(strings.TrimLeft(lines[0], " \t"))
}

// linesValue formats the first of some lines without its indentation, and the number of the others.
func linesValue(lines []string, indent int) string {
	switch {
	case len(lines) == 0:
		return absent
	case len(lines) == 1 && lines[0] == "":
		return "an empty line"
	}
	text := value(lines[0][indent:])
	if more := len(lines) - 1; more > 0 {
		text += " +" + format.Counted(more, "line", "lines")
	}
	return text
}
