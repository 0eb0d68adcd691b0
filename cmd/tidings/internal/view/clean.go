package view

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A terminal takes some characters for commands, and what a server says comes from anybody
// who may write to the cluster. What is printed passes through here: each text of a line
// through [Printable], a document through inJSON, and all of it once more through [Clean],
// in the [Screen].

// replaced stands for a character that is not printed.
const replaced = '·'

// commands reports whether a terminal, or a parser of YAML, may take a character for something
// else than text.
func commands(r rune) bool {
	switch r {
	case '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// Printable returns a text as a part of a line: a space stands for an end of line and a tab,
// a dot for every other character that is a command.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case commands(r) || r == utf8.RuneError:
			return replaced
		}
		return r
	}, text)
}

// Clean returns whole lines without commands but for those of a [Palette], where colours says
// that there are some.
func Clean(lines string, colours bool) string {
	var b strings.Builder
	for len(lines) > 0 {
		r, size := utf8.DecodeRuneInString(lines)
		if code := colourIn(lines); r == '\x1b' && colours && code != "" {
			size = len(code)
		} else if r == utf8.RuneError && size == 1 || commands(r) && r != '\n' && r != '\t' {
			b.WriteRune(replaced)
			lines = lines[size:]
			continue
		}
		b.WriteString(lines[:size])
		lines = lines[size:]
	}
	return b.String()
}

// colourIn returns the code of a Palette with which a text begins, or "".
func colourIn(text string) string {
	for _, code := range escapes {
		if strings.HasPrefix(text, code) {
			return code
		}
	}
	return ""
}

// inJSON writes commands in a JSON document as escapes. They can only stand in its strings,
// which stay what they are.
func inJSON(document string) string {
	if !strings.ContainsFunc(document, isCommandInDocument) {
		return document
	}
	var b strings.Builder
	for _, r := range document {
		if isCommandInDocument(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isCommandInDocument(r rune) bool { return commands(r) && r != '\n' && r != '\t' }
