package view

import "strings"

// passage is the first place where two texts of several lines differ.
type passage struct {
	line     int // from 1, in the text after
	old, now []string
}

// passageOf compares texts line by line. It is ok only where one of them has several
// lines and a part of them is the same: otherwise a comparison as a whole says more.
func passageOf(old, now any) (p passage, ok bool) {
	before, beforeIsText := old.(string)
	after, afterIsText := now.(string)
	if !beforeIsText || !afterIsText || !strings.Contains(strings.TrimSuffix(before, "\n"), "\n") && !strings.Contains(strings.TrimSuffix(after, "\n"), "\n") {
		return p, false
	}
	if strings.HasSuffix(before, "\n") && strings.HasSuffix(after, "\n") {
		before, after = strings.TrimSuffix(before, "\n"), strings.TrimSuffix(after, "\n")
	}
	p = passage{line: 1, old: strings.Split(before, "\n"), now: strings.Split(after, "\n")}
	all := len(p.old) + len(p.now)
	for len(p.old) > 0 && len(p.now) > 0 && p.old[0] == p.now[0] {
		p.old, p.now = p.old[1:], p.now[1:]
		p.line++
	}
	for len(p.old) > 0 && len(p.now) > 0 && p.old[len(p.old)-1] == p.now[len(p.now)-1] {
		p.old, p.now = p.old[:len(p.old)-1], p.now[:len(p.now)-1]
	}
	return p, len(p.old)+len(p.now) < all
}

// values shows the lines before and after: the first of each that differs, without the
// indentation that they have in common, and how many more there are.
func (p passage) values() (old, now string) {
	indent := -1
	for _, lines := range [][]string{p.old, p.now} {
		if len(lines) > 0 {
			own := len(lines[0]) - len(strings.TrimLeft(lines[0], " \t"))
			if indent < 0 || own < indent {
				indent = own
			}
		}
	}
	return lineValue(p.old, indent), lineValue(p.now, indent)
}

// lineValue shows the first of some lines without so much of its beginning.
func lineValue(lines []string, indent int) string {
	switch {
	case len(lines) == 0:
		return absent
	case len(lines) == 1 && lines[0] == "":
		return "an empty line"
	}
	text := value(lines[0][indent:])
	if more := len(lines) - 1; more > 0 {
		text += " +" + Counted(int64(more), "line", "lines")
	}
	return text
}
