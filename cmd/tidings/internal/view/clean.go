package view

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A terminal interprets some characters as commands, and every client that may write to the cluster
// determines what a server sends. Every printed text passes through these functions: each text of a
// line through [Printable], a document through [Escaped], and all output once more through [Clean],
// in the [Screen].

// replacement is printed in the place of a control character.
const replacement = '·'

// isControl reports whether a terminal, or a parser of YAML, may interpret a character.
func isControl(r rune) bool {
	switch r {
	case '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

func isControlInDocument(r rune) bool { return isControl(r) && r != '\n' && r != '\t' }

// Printable returns a text as part of a line. It has a space for each newline and tab, and a dot
// for each other control character and for invalid UTF-8.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case isControl(r) || r == utf8.RuneError:
			return replacement
		}
		return r
	}, text)
}

// Clean returns whole lines with a dot for each control character. With colours, the escape
// sequences of a [Palette] remain.
func Clean(lines string, colours bool) string {
	var b strings.Builder
	for len(lines) > 0 {
		r, size := utf8.DecodeRuneInString(lines)
		if code := colourIn(lines); colours && code != "" {
			size = len(code)
		} else if r == utf8.RuneError && size == 1 || isControlInDocument(r) {
			b.WriteRune(replacement)
			lines = lines[size:]
			continue
		}
		b.WriteString(lines[:size])
		lines = lines[size:]
	}
	return b.String()
}

// colourIn returns the escape sequence of a Palette at the beginning of a text, or "".
func colourIn(text string) string {
	for _, code := range escapes {
		if strings.HasPrefix(text, code) {
			return code
		}
	}
	return ""
}

// Escaped escapes the control characters of a JSON document. They occur in strings only, whose
// values do not change.
func Escaped(document string) string {
	if !strings.ContainsFunc(document, isControlInDocument) {
		return document
	}
	var b strings.Builder
	for _, r := range document {
		if isControlInDocument(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
