package main

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// span is a text of one style. The style is the parameter of its escape sequence, "" for none.
type span struct{ style, text string }

type line []span

func (l line) width() int {
	width := 0
	for _, s := range l {
		width += utf8.RuneCountInString(s.text)
	}
	return width
}

func (l line) text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// moment is the state of the terminal from a time on: how many lines are complete, and the last
// line, which is not.
type moment struct {
	at     time.Duration
	lines  int
	status line
}

// recording is a terminal's output.
type recording struct {
	columns, rows int

	lines   []line // complete
	last    line
	style   string
	moments []moment
	rest    string // of an escape sequence that is not complete
}

var (
	escape     = regexp.MustCompile("^\x1b\\[([0-9;]*)([a-zA-Z])")
	incomplete = regexp.MustCompile("\x1b(\\[[0-9;]*)?$")
)

// write takes output that came at a time.
func (r *recording) write(text string, at time.Duration) {
	text, r.rest = r.rest+text, ""
	if i := incomplete.FindStringIndex(text); i != nil {
		text, r.rest = text[:i[0]], text[i[0]:]
	}
	for !utf8.ValidString(text) && len(r.rest) < utf8.UTFMax {
		text, r.rest = text[:len(text)-1], text[len(text)-1:]+r.rest
	}
	for text != "" {
		size := r.take(text)
		text = text[size:]
	}
	r.moments = append(r.moments, moment{at, len(r.lines), append(line(nil), r.last...)})
}

// take takes the first character or escape sequence of a text and returns its size.
func (r *recording) take(text string) int {
	if found := escape.FindStringSubmatch(text); found != nil {
		switch {
		case found[2] == "m" && found[1] == "0":
			r.style = ""
		case found[2] == "m":
			r.style = found[1]
		case found[2] == "K":
			r.last = nil
		}
		return len(found[0])
	}
	char, size := utf8.DecodeRuneInString(text)
	switch {
	case char == '\n':
		r.lines, r.last = append(r.lines, r.last), nil
	case char < ' ':
	default:
		if r.last.width() == r.columns {
			r.lines, r.last = append(r.lines, r.last), nil
		}
		if n := len(r.last); n > 0 && r.last[n-1].style == r.style {
			r.last[n-1].text += string(char)
		} else {
			r.last = append(r.last, span{r.style, string(char)})
		}
	}
	return size
}
