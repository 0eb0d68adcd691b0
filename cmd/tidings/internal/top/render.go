package top

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/see/format"
)

// space returns the number of lines that fit below the names of the columns: the last line is the
// footer.
func (m model) space() int { return max(1, m.height-len(m.head())-2) }

// View draws the screen.
func (m model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	v.WindowTitle = "tidings top " + view.Printable(m.client.name)
	return v
}

// draw returns the lines of the screen. Each line fits.
func (m model) draw() string {
	lines := m.head()
	if n := len(m.opened); m.isHelp {
		lines = append(lines, m.drawKeys()...)
	} else if n > 0 {
		lines = append(lines, m.drawDetails(m.opened[n-1])...)
	} else {
		lines = append(lines, m.drawTable()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, min(len(lines), m.height-1))], m.palette.Dim(m.footer()))
	for i, l := range lines {
		lines[i] = strings.TrimRight(ansi.Truncate(l, m.width, "…"), " ")
	}
	return strings.Join(lines, "\n")
}

// head returns the lines above the rows: the title, the names of the screens, and the notes.
func (m model) head() []string {
	f := m.figures
	title := fmt.Sprintf("%s  %s, every %s  heap %s, %s", m.palette.Bold(view.Printable(m.client.name)),
		format.Clock(f.At), format.Short(m.interval), format.Bytes(f.Process.HeapBytes),
		format.Counted(f.Process.Goroutines, "goroutine", "goroutines"))
	return slices.Concat([]string{title}, m.tabs(), m.notes())
}

// tabs returns the names of the screens, in as many lines as they need.
func (m model) tabs() []string {
	lines, used := []string{""}, 0
	for i, t := range m.figures.screens() {
		tab := fmt.Sprintf(" [%d] %s %d ", i+1, t.name, len(t.rows))
		if used += len(tab); used > m.width && used > len(tab) {
			lines, used = append(lines, ""), len(tab)
		}
		switch {
		case i == m.screen:
			tab = m.palette.Bold(cursorMark + tab[1:])
		case i == problemsScreen && len(t.rows) > 0 && !m.isStale():
			tab = m.palette.Red(tab)
		}
		lines[len(lines)-1] += tab
	}
	return lines
}

// notes returns the lines about the figures: how old they are, the text that the user types or the
// filter, and the columns that are left out. It is an empty line if there is nothing to say.
func (m model) notes() []string {
	var notes []string
	if m.isStale() {
		text := fmt.Sprintf("No answer for %s: figures of %s.", format.Short(time.Since(m.answered)),
			format.Clock(m.figures.At))
		if m.failure != nil {
			text += " " + m.failure.Error()
		}
		for _, line := range wrapped(view.Printable(text), m.width) {
			notes = append(notes, m.palette.Red(line))
		}
	}
	switch {
	case m.typing == typesFilter:
		notes = append(notes, "filter: "+m.typed+"█")
	case m.typing == typesKey:
		notes = append(notes, "key (namespace/name): "+m.typed+"█")
	case m.place().filter != "":
		notes = append(notes, "filter: "+m.place().filter)
	}
	if len(m.opened) == 0 && !m.isHelp {
		t, rows := m.table()
		if _, leftOut := t.widths(rows, m.width-margin); len(leftOut) > 0 {
			text := "No room for " + strings.Join(leftOut, ", ")
			notes = append(notes, m.palette.Dim(ansi.Truncate(text, m.width, "…")))
		}
	}
	if notes == nil {
		notes = []string{""}
	}
	return notes
}

// footer returns the most important keys.
func (m model) footer() string {
	if m.typing != typesNothing {
		return "Enter takes the text  Esc leaves it out"
	}
	var keys []string
	for _, b := range bindings() {
		if b.footer != "" && !(b.tables && len(m.opened) > 0) {
			keys = append(keys, b.shown+" "+b.footer)
		}
	}
	return strings.Join(keys, "  ")
}

// drawKeys returns the help: what each key does.
func (m model) drawKeys() []string {
	s := &sheet{width: m.width - margin}
	s.heading("Keys")
	for _, b := range bindings() {
		s.add("%-6s %s", b.shown, strings.ReplaceAll(b.what, "`", ""))
	}
	var lines []string
	for _, l := range s.lines {
		lines = append(lines, m.drawn(l, false))
	}
	return lines
}

// drawTable returns the names of the columns, the lines of the rows around the one at the cursor, and
// the graphs of the first screen if there is room.
func (m model) drawTable() []string {
	t, rows := m.table()
	width := m.width - margin
	var lines, shown []string
	switch {
	case len(rows) > 0:
	case len(t.rows) > 0:
		lines = []string{"", "  No row contains the filter."}
	case m.isStale():
		lines = []string{"", "  Not known: there is no answer."}
	default:
		lines = []string{"", "  " + t.empty}
	}
	if len(rows) > 0 {
		widths, _ := t.widths(rows, width)
		lines = []string{m.palette.Dim(strings.Repeat(" ", margin) + t.heading(widths))}
		ids, _ := m.shown()
		chosen, at := m.place().at(ids), 0
		for i, r := range rows {
			if i == chosen {
				at = len(shown)
			}
			for n, line := range t.lines(r.cells, widths, width) {
				shown = append(shown, m.marked(line, i == chosen && n == 0, r.bad))
			}
		}
		from, to := window(at, len(shown), m.space())
		lines = append(lines, shown[from:to]...)
	}
	if m.screen == problemsScreen {
		s := &sheet{width: width, lines: []line{{}}}
		s.graphs(m.figures.History)
		if len(s.lines) > 1 && len(lines)+len(s.lines) <= m.space()+1 {
			for _, l := range s.lines[1:] {
				lines = append(lines, m.drawn(l, false))
			}
		}
	}
	return lines
}

// drawDetails returns the lines around the one at the cursor.
func (m model) drawDetails(d details) []string {
	switch {
	case d.err != nil:
		lines := []string{""}
		for _, l := range wrapped(view.Printable(d.err.Error()), m.width-2) {
			lines = append(lines, m.palette.Red("  "+l))
		}
		return lines
	case d.page == nil:
		return []string{"", "  Reading …"}
	}
	all := m.lines(d)
	ids, _ := m.shown()
	at := m.place().at(ids)
	from, to := window(at, len(all), m.space()+1) // the line of the names of columns is free
	var lines []string
	for i, l := range all[from:to] {
		lines = append(lines, m.drawn(l, from+i == at))
	}
	return lines
}

// drawn returns a line of details.
func (m model) drawn(l line, chosen bool) string {
	text := l.text
	if l.opens {
		text = linkMark + strings.TrimPrefix(text, " ")
	}
	if l.heading {
		text = m.palette.Bold(text)
	}
	return m.marked(text, chosen, l.bad)
}

const (
	// cursorMark is the mark of the row at the cursor, linkMark the mark of a line that Enter
	// opens.
	cursorMark, linkMark = "▶", "›"
	// margin is the width of a cursorMark.
	margin = 1
)

func (m model) marked(line string, chosen, bad bool) string {
	switch {
	case m.isStale():
		line = m.palette.Dim(ansi.Strip(line))
	case bad:
		line = m.palette.Red(line)
	}
	if chosen {
		return m.palette.Cyan(cursorMark) + line
	}
	return " " + line
}

// window returns the part of n lines that is shown, with the index at in the middle if possible.
func window(at, n, space int) (from, to int) {
	from = max(0, min(at-space/2, n-space))
	return from, min(n, from+space)
}

// lines returns the lines of open details that contain its filter, and the headings.
func (m model) lines(d details) []line {
	all := detailsOf(d.page, m.figures.At, m.width-margin)
	if d.filter == "" {
		return all
	}
	filter := strings.ToLower(d.filter)
	var shown []line
	for _, l := range all {
		link, err := url.QueryUnescape(l.link)
		if l.heading || strings.Contains(strings.ToLower(l.text), filter) ||
			err == nil && strings.Contains(strings.ToLower(link), filter) {
			shown = append(shown, l)
		}
	}
	return shown
}
