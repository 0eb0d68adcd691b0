package view

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidings-go/tidings"
)

const (
	// clockFormat is the time of a line, shortClockFormat that on a narrow screen.
	clockFormat, shortClockFormat = "15:04:05.000", "15:04:05"
	// narrow is how many characters a screen has that is narrow.
	narrow = 110
	// nameWidth bounds the column of names: longer ones push what follows.
	nameWidth = 44
	// minNameWidth is how much of a name is shown on the narrowest screen.
	minNameWidth = 16
	// maxContextWidth is how much of the name of a context is shown.
	maxContextWidth = 24
	// pathsWithoutWidth is how many paths a line shows where nothing bounds it.
	pathsWithoutWidth = 6
)

// LinesOptions are the choices of a [Lines]. The zero value is ready.
type LinesOptions struct {
	// Palette colours the lines.
	Palette Palette
	// Width returns how many characters fit on a line; nil, or 0, means any number.
	Width func() int
	// Types are those to come: the column of types is as wide as they need.
	Types []Type
}

// Lines renders changes, a line each.
type Lines struct {
	o            LinesOptions
	contextWidth int // 0 where there is one cluster
	typeWidth    int
	names        int // width of the column of names, which grows with them
}

// NewLines returns a renderer.
func NewLines(o LinesOptions) *Lines {
	l := &Lines{o: o}
	for _, of := range o.Types {
		l.typeWidth = max(l.typeWidth, len(of.Singular))
		l.contextWidth = max(l.contextWidth, min(maxContextWidth, utf8.RuneCountInString(of.Context)))
	}
	return l
}

// Render returns the line of a change, with its end.
func (l *Lines) Render(c Change) string {
	p := l.o.Palette
	width := 0
	if l.o.Width != nil {
		width = l.o.Width()
	}
	clock := c.At.Format(clockFormat)
	name := Printable(c.Name())
	if width > 0 && width < narrow {
		clock = c.At.Format(shortClockFormat)
		name = shortenedInside(name, max(minNameWidth, width/3))
	}
	l.names = max(l.names, min(nameWidth, utf8.RuneCountInString(name)))
	column := l.names
	if limit := max(minNameWidth, width/3); width > 0 {
		column = min(column, limit)
	}
	sign, paint := l.sign(c)
	kind, shown := padded(Printable(c.Of.Singular), l.typeWidth), padded(name, column)
	if l.contextWidth > 0 {
		kind = padded(shortenedInside(Printable(c.Of.Context), maxContextWidth), l.contextWidth) + " " + kind
	}
	used := len(clock) + len(sign) + utf8.RuneCountInString(kind) + utf8.RuneCountInString(shown) + len("     ")
	room := 0
	if width > 0 {
		room = max(1, width-used)
	}
	line := strings.Join([]string{p.Dim(clock), paint(sign), p.Dim(kind), p.Name(shown)}, " ") + "  " + l.detail(c, room)
	line = strings.TrimRight(line, " ")
	return clipped(line, width) + "\n"
}

func (l *Lines) sign(c Change) (string, func(string) string) {
	p := l.o.Palette
	switch {
	case c.Initial:
		return " ", p.Dim
	case c.Event == tidings.Added:
		return "+", p.Good
	case c.Event == tidings.Deleted:
		return "-", p.Bad
	default:
		return "~", p.Changed
	}
}

// detail says what there is to say of a change, in width characters; 0 is no bound.
func (l *Lines) detail(c Change, width int) string {
	if c.Event == tidings.Updated {
		return l.differences(c, width)
	}
	fields := Fields(c.Object())
	var parts []string
	if about := Printable(gist(c.Of.Kind.GroupKind(), fields)); about != "" {
		parts = append(parts, about)
	}
	if old, ok := age(fields, c.At); ok && (c.Initial || c.Event == tidings.Deleted) {
		word := "age "
		if c.Event == tidings.Deleted {
			word = "lived "
		}
		parts = append(parts, word+Age(old))
	}
	if c.Tombstone {
		parts = append(parts, "deleted unseen: this is the last known state")
	}
	return l.o.Palette.Dim(strings.Join(parts, ", "))
}

// differences lists the fields that an update changed, as many as fit.
func (l *Lines) differences(c Change, width int) string {
	p := l.o.Palette
	if c.Old.GetUID() != c.New.GetUID() {
		return p.Changed("another object took the name") + ": " + p.Dim("uid ") + Printable(string(c.Old.GetUID())) + p.Dim(" → ") + Printable(string(c.New.GetUID()))
	}
	found := differencesOf(c.Old, c.New)
	if len(found) == 0 {
		return p.Dim("no difference but the version: " + Printable(c.Old.GetResourceVersion()+" → "+c.New.GetResourceVersion()))
	}
	var b strings.Builder
	used := 0
	for i, d := range found {
		room := width - used
		if left := len(found) - i - 1; left > 0 {
			room -= len(moreText(left))
		}
		switch {
		case i == 0 && width > 0:
			d = d.within(max(room, 1))
		case i > 0 && (width > 0 && d.length()+len(separator) > room || width == 0 && i == pathsWithoutWidth):
			b.WriteString(p.Dim(moreText(len(found) - i)))
			return b.String()
		}
		if i > 0 {
			b.WriteString(p.Dim(separator))
			used += len(separator)
		}
		b.WriteString(p.Dim(d.path+" ") + shade(d.old, p.Before, p) + p.Dim(arrow) + shade(d.now, p.After, p))
		used += d.length()
	}
	return b.String()
}

// shade colours a value, unless there is none.
func shade(value string, paint func(string) string, p Palette) string {
	if value == absent {
		return p.Dim(value)
	}
	return paint(value)
}

const (
	separator = "  "
	arrow     = " → "
)

func moreText(n int) string { return fmt.Sprintf("  +%d more", n) }
