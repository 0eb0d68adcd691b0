package top

import (
	"net/url"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/debug"
)

// model is what the program shows and what the user has chosen. Its methods do no input or output:
// the functions in reader do, in commands.
type model struct {
	name    string // of the process
	palette view.Palette
	reader  reader

	width, height int
	figures       figures
	failure       error // of the last refresh; nil if it succeeded

	screen  int
	screens [groupsScreen + 1]choice
	opened  []details // the last one is shown; none: a screen is
	typing  prompt
	typed   string
}

// reader has the functions that read the figures of a process.
type reader struct {
	// wait waits until it is time to refresh.
	wait func() ticked
	// refresh reads the first page, and the page at a link that is not "".
	refresh func(link string) refreshed
	// open reads the page at a link.
	open func(link string) answered
}

// refreshed is what a refresh has read.
type refreshed struct {
	overview debug.Overview
	page     answered
	err      error
}

// answered is a page with details.
type answered struct {
	link string
	page any
	err  error
}

// ticked says that it is time to refresh.
type ticked struct{}

// choice is what the user has chosen on a screen.
type choice struct {
	sorting sorting
	filter  string
	cursor  int
	id      string // of the row at the cursor, "" until it was moved
}

// details are an open page.
type details struct {
	link   string
	page   any   // nil until it was read
	err    error // of the last attempt
	filter string
	cursor int
	chosen string // the link of the line at the cursor
}

// at returns the index of the chosen line: the one with its link that is nearest to the cursor. It
// returns -1 without lines.
func (d details) at(lines []line) int {
	if d.chosen == "" {
		return min(d.cursor, len(lines)-1)
	}
	return nearest(d.cursor, len(lines), func(i int) bool { return lines[i].link == d.chosen })
}

// address returns the address of a page. That of an informer has the keys that contain the filter.
func (d details) address() string {
	if d.filter != "" && strings.HasPrefix(d.link, "informer?") {
		return d.link + "&search=" + url.QueryEscape(d.filter)
	}
	return d.link
}

// prompt says what the user types.
type prompt int

const (
	typesNothing prompt = iota
	typesFilter
	typesKey
)

// Init starts the refreshes.
func (m model) Init() tea.Cmd { return m.wait() }

// wait returns the command that waits for the next refresh.
func (m model) wait() tea.Cmd {
	return func() tea.Msg { return m.reader.wait() }
}

// refresh returns the command that refreshes what is shown.
func (m model) refresh() tea.Cmd {
	link := ""
	if n := len(m.opened); n > 0 {
		link = m.opened[n-1].address()
	}
	return func() tea.Msg { return m.reader.refresh(link) }
}

// Update takes a key, figures, the size of the screen, or the time of a refresh.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.press(msg)
	case tea.PasteMsg:
		if m.typing != typesNothing {
			m.typed += view.Printable(msg.Content)
		}
	case ticked:
		return m, m.refresh()
	case answered:
		m.answer(msg)
	case refreshed:
		if m.failure = msg.err; msg.err == nil {
			m.figures.Overview = msg.overview
			m.answer(msg.page)
		}
		return m, m.wait()
	}
	return m, nil
}

// answer shows a page, if it is still open.
func (m *model) answer(a answered) {
	m.opened = slices.Clone(m.opened)
	for i, d := range m.opened {
		if d.address() != a.link {
			continue
		}
		m.opened[i].err = a.err
		if a.err == nil {
			m.opened[i].page = a.page
		}
	}
}

// open shows the page at a link.
func (m model) open(link string) (tea.Model, tea.Cmd) {
	if link == "" {
		return m, nil
	}
	m.opened = append(slices.Clone(m.opened), details{link: link})
	return m, m.load()
}

// load returns the command that reads the open page.
func (m model) load() tea.Cmd {
	link := m.opened[len(m.opened)-1].address()
	return func() tea.Msg { return m.reader.open(link) }
}

// table returns the table of the screen and the rows that are shown.
func (m model) table() (table, []row) {
	t, c := m.figures.screens()[m.screen], m.screens[m.screen]
	return t, matching(t.sorted(c.sorting), c.filter)
}

// at returns the index of the chosen row: the one with its id that is nearest to the cursor. It
// returns -1 without rows.
func (c choice) at(rows []row) int {
	return nearest(c.cursor, len(rows), func(i int) bool { return rows[i].id == c.id })
}

// nearest returns the index among n that is nearest to a cursor and is chosen, or that of the cursor
// if none is.
func nearest(cursor, n int, isChosen func(i int) bool) int {
	cursor = min(cursor, n-1)
	for off := range n {
		for _, i := range []int{cursor - off, cursor + off} {
			if i >= 0 && i < n && isChosen(i) {
				return i
			}
		}
	}
	return cursor
}
