package top

import (
	"fmt"
	"net/url"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/see/format"
)

// frameLines is the number of lines of a screen besides the rows: the title, the names of the
// screens, the note, the names of the columns, and the help.
const frameLines = 5

// space returns the number of rows that fit on the screen.
func (m model) space() int { return max(1, m.height-frameLines) }

// View draws the screen.
func (m model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	v.WindowTitle = "tidings top " + view.Printable(m.client.name)
	return v
}

// draw returns the lines of the screen. Each line fits.
func (m model) draw() string {
	lines := []string{m.title(), m.tabs(), m.note()}
	if n := len(m.opened); n > 0 {
		lines = append(lines, m.drawDetails(m.opened[n-1])...)
	} else {
		lines = append(lines, m.drawTable()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, min(len(lines), m.height-1))], m.palette.Dim(m.help()))
	for i, l := range lines {
		lines[i] = strings.TrimRight(ansi.Truncate(l, m.width, "…"), " ")
	}
	return strings.Join(lines, "\n")
}

func (m model) title() string {
	f := m.figures
	return fmt.Sprintf("%s  %s  heap %s, %s", m.palette.Bold(view.Printable(m.client.name)),
		f.At.Format("15:04:05"), format.Bytes(f.Process.HeapBytes),
		format.Counted(f.Process.Goroutines, "goroutine", "goroutines"))
}

func (m model) tabs() string {
	var tabs []string
	for i, t := range m.figures.screens() {
		tab := fmt.Sprintf(" %d %s %d", i+1, t.name, len(t.rows))
		switch {
		case i == m.screen:
			tab = m.palette.Bold("[" + tab[1:] + "]")
		case i == problemsScreen && len(t.rows) > 0:
			tab = m.palette.Red(tab)
		}
		tabs = append(tabs, tab)
	}
	return strings.Join(tabs, "")
}

// note returns the text that the user types, the error of the last refresh, or the filter.
func (m model) note() string {
	switch {
	case m.typing == typesFilter:
		return "filter: " + m.typed + "█"
	case m.typing == typesKey:
		return "key (namespace/name): " + m.typed + "█"
	case m.failure != nil:
		return m.palette.Red(view.Printable(m.failure.Error()))
	case m.place().filter != "":
		return "filter: " + m.place().filter
	}
	return ""
}

func (m model) help() string {
	switch {
	case m.typing != typesNothing:
		return "enter takes the text  esc leaves it out"
	case len(m.opened) > 0:
		return "↑↓ move  enter opens a › line  esc back  / filter  g key  1-6 screen  q quit"
	}
	return "↑↓ move  enter open  / filter  g key  A-Z sort  1-6 screen  q quit"
}

// drawTable returns the names of the columns and the rows around the one at the cursor.
func (m model) drawTable() []string {
	t, rows := m.table()
	if len(rows) == 0 {
		if len(t.rows) > 0 {
			return []string{"", "  No row contains the filter."}
		}
		return []string{"", "  " + t.empty}
	}
	widths := t.widths(rows, m.width-margin)
	lines := []string{m.palette.Dim(strings.Repeat(" ", margin) + t.heading(widths))}
	ids, _ := m.shown()
	at := m.place().at(ids)
	from, to := window(at, len(rows), m.space())
	for i, r := range rows[from:to] {
		lines = append(lines, m.marked(t.line(r.cells, widths), from+i == at, r.bad))
	}
	return lines
}

// drawDetails returns the lines around the one at the cursor.
func (m model) drawDetails(d details) []string {
	switch {
	case d.err != nil:
		return []string{"", m.palette.Red("  " + view.Printable(d.err.Error()))}
	case d.page == nil:
		return []string{"", "  Reading …"}
	}
	all := m.lines(d)
	ids, _ := m.shown()
	at := m.place().at(ids)
	from, to := window(at, len(all), m.space()+1) // the line of the names of columns is free
	var lines []string
	for i, l := range all[from:to] {
		text := l.text
		if l.opens {
			text = linkMark + strings.TrimPrefix(text, " ")
		}
		if l.heading {
			text = m.palette.Bold(text)
		}
		lines = append(lines, m.marked(text, from+i == at, l.bad))
	}
	return lines
}

const (
	// cursorMark is the mark of the row at the cursor, linkMark the mark of a line that Enter
	// opens.
	cursorMark, linkMark = "▶", "›"
	// margin is the width of a cursorMark.
	margin = 1
)

func (m model) marked(line string, chosen, bad bool) string {
	if bad {
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
