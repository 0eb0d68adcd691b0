package view

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tidings-go/tidings"
)

const (
	// clockFormat is the format of the time of a line, shortClockFormat the format on a narrow
	// screen.
	clockFormat, shortClockFormat = "15:04:05.000", "15:04:05"
	// narrow is the width below which a screen is narrow, and twoLines the width below which the
	// fields of an update have a line of their own, indented by detailIndent.
	narrow, twoLines = 110, 90
	detailIndent     = 4
	// maxNameWidth is the largest width of the column of names. Longer names exceed it.
	maxNameWidth = 44
	// minNameWidth is the number of characters of a name that are shown on the narrowest screen.
	minNameWidth = 16
	// maxContextWidth is the largest number of characters of the name of a context.
	maxContextWidth = 24
	// maxDifferences is the largest number of differences on a line without a width.
	maxDifferences = 6
)

// LinesOptions are the choices of a [Lines]. The zero value is ready.
type LinesOptions struct {
	// Palette colours the lines.
	Palette Palette
	// Width returns the number of characters that fit on a line; nil, or 0, means any number.
	Width func() int
	// Types are the types of the changes: their names determine the width of the column of types.
	Types []Type
}

// Lines renders each change as a line, and an update on a narrow screen as two.
type Lines struct {
	o            LinesOptions
	contextWidth int // 0 for one cluster
	typeWidth    int
	nameWidth    int // grows with the names
}

// NewLines returns a renderer.
func NewLines(o LinesOptions) *Lines {
	l := &Lines{o: o}
	for _, of := range o.Types {
		l.typeWidth = max(l.typeWidth, len(of.Singular))
		l.contextWidth = max(l.contextWidth,
			min(maxContextWidth, ansi.StringWidth(of.Context)))
	}
	return l
}

// Render returns the lines of a change, each with its newline.
func (l *Lines) Render(c Change) string {
	p, width := l.o.Palette, l.width()
	clock, name := c.At.Format(clockFormat), Printable(c.Name())
	if c.Event == tidings.Updated && width > detailIndent && width < twoLines {
		head := p.Dim(c.At.Format(shortClockFormat)) + " " + l.sign(c) + " " + p.Dim(l.kind(c)) + " "
		head += p.Cyan(shortenedInside(name, width-ansi.StringWidth(head)))
		below := strings.Repeat(" ", detailIndent) + l.update(c, width-detailIndent)
		return shortened(head, width) + "\n" + shortened(below, width) + "\n"
	}
	if width > 0 && width < narrow {
		clock = c.At.Format(shortClockFormat)
		name = shortenedInside(name, max(minNameWidth, width/3))
	}
	l.nameWidth = max(l.nameWidth, min(maxNameWidth, ansi.StringWidth(name)))
	column := l.nameWidth
	if width > 0 {
		column = min(column, max(minNameWidth, width/3))
	}
	name = padded(name, column)
	kind := l.kind(c)
	room := 0
	if width > 0 {
		room = max(1, width-ansi.StringWidth(clock+" ~ "+kind+" "+name+"  "))
	}
	line := p.Dim(clock) + " " + l.sign(c) + " " + p.Dim(kind) + " " + p.Cyan(name) + "  " +
		l.detail(c, room)
	return shortened(strings.TrimRight(line, " "), width) + "\n"
}

// kind returns the columns of the context and the type.
func (l *Lines) kind(c Change) string {
	kind := padded(Printable(c.Of.Singular), l.typeWidth)
	if l.contextWidth == 0 {
		return kind
	}
	context := shortenedInside(Printable(c.Of.Context), maxContextWidth)
	return padded(context, l.contextWidth) + " " + kind
}

// width returns the number of characters that fit, 0 for any number.
func (l *Lines) width() int {
	if l.o.Width == nil {
		return 0
	}
	return l.o.Width()
}

func (l *Lines) sign(c Change) string {
	switch {
	case c.Initial:
		return " "
	case c.Event == tidings.Added:
		return l.o.Palette.Green("+")
	case c.Event == tidings.Deleted:
		return l.o.Palette.Red("-")
	default:
		return l.o.Palette.Yellow("~")
	}
}

// detail describes a change in up to width characters; 0 means any number.
func (l *Lines) detail(c Change, width int) string {
	if c.Event == tidings.Updated {
		return l.update(c, width)
	}
	var parts []string
	if state := Printable(summary(c.Of.Kind.GroupKind(), Fields(c.Object()))); state != "" {
		parts = append(parts, state)
	}
	var created metav1.Time
	if dated, ok := c.Object().(metav1.Object); ok {
		created = dated.GetCreationTimestamp()
	}
	if !created.IsZero() && (c.Initial || c.Event == tidings.Deleted) {
		word := "age "
		if c.Event == tidings.Deleted {
			word = "lived "
		}
		parts = append(parts, word+duration.HumanDuration(max(0, c.At.Sub(created.Time))))
	}
	if c.Tombstone {
		parts = append(parts, "deleted unseen: this is the last known state")
	}
	for width > 0 && len(parts) > 1 && ansi.StringWidth(strings.Join(parts, ", ")) > width {
		parts = parts[:len(parts)-1]
	}
	return l.o.Palette.Dim(strings.Join(parts, ", "))
}

const (
	separator = "  "
	arrow     = " → "
)

// update lists as many differences between the states of an update as fit.
func (l *Lines) update(c Change, width int) string {
	p := l.o.Palette
	if before, after := c.Old.GetUID(), c.New.GetUID(); before != after {
		return p.Yellow("another object has this name now") + ": " +
			p.Dim("uid ") + Printable(string(before)) + p.Dim(arrow) + Printable(string(after))
	}
	found := differencesOf(c.Old, c.New)
	if len(found) == 0 {
		return p.Dim("no difference but the version: " +
			Printable(c.Old.GetResourceVersion()+arrow+c.New.GetResourceVersion()))
	}
	var b strings.Builder
	used := 0
	for i, d := range found {
		more, room := "", width-used
		if i < len(found)-1 {
			room -= len(l.more(len(found) - i - 1))
		}
		switch {
		case i == 0 && width > 0:
			d = d.within(max(room, 1))
		case i > 0 && width > 0 && d.length()+len(separator) > room,
			width == 0 && i == maxDifferences:
			more = l.more(len(found) - i)
		}
		if more != "" {
			b.WriteString(p.Dim(more))
			break
		}
		if i > 0 {
			b.WriteString(p.Dim(separator))
			used += len(separator)
		}
		b.WriteString(p.Dim(d.path+" ") + shade(d.old, p.Red, p) + p.Dim(arrow) +
			shade(d.now, p.Green, p))
		used += d.length()
	}
	return b.String()
}

// more returns a text with the number of differences that a line does not show.
func (l *Lines) more(n int) string {
	text := fmt.Sprintf("  +%d", n)
	if width := l.width(); width > 0 && width < narrow {
		return text
	}
	return text + " more"
}

// shade colours a value, but not a missing one.
func shade(value string, paint func(string) string, p Palette) string {
	if value == absent {
		return p.Dim(value)
	}
	return paint(value)
}
