package top

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/debug"
)

// model is the state of the program: the figures, and the choices of the user. Only its commands
// use the client.
type model struct {
	ctx      context.Context // context of the commands
	client   *Client
	interval time.Duration
	palette  view.Palette

	width, height int
	figures       figures
	failure       error     // of the last refresh; nil if it succeeded
	answered      time.Time // of the figures, by the clock of this machine

	screen  int
	screens [groupsScreen + 1]struct {
		place
		sorting sorting
	}
	opened []details // the last one is shown, or a screen if there are none
	typing prompt
	typed  string
	isHelp bool // the keys are shown
}

// place is the position of the user on a screen or in details.
type place struct {
	filter string // text that the shown rows and lines contain
	cursor int
	id     string // of the row or line at the cursor, "" before the first move
}

// details are an open page.
type details struct {
	place
	link string
	page any   // nil until it was read
	err  error // of the last attempt
}

// prompt is the kind of text that the user types.
type prompt int

const (
	typesNothing prompt = iota
	typesFilter
	typesKey
)

// The messages: the result of a refresh, the result of reading a page with details, the time of a
// refresh, and the time to draw again while there is no answer.
type (
	refreshed struct {
		overview debug.Overview
		page     answered
		err      error
	}
	answered struct {
		link string
		page any
		err  error
	}
	ticked struct{}
	waited struct{}
)

// Init starts the refreshes.
func (m model) Init() tea.Cmd { return tea.Batch(m.wait(m.interval, ticked{}), m.draws()) }

// draws returns the command that draws once a second.
func (m model) draws() tea.Cmd { return m.wait(time.Second, waited{}) }

func (m model) wait(d time.Duration, then tea.Msg) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-m.ctx.Done():
		case <-time.After(d):
		}
		return then
	}
}

// isStale reports whether the figures are old: the last refresh has failed, or takes long.
func (m model) isStale() bool {
	return m.failure != nil || time.Since(m.answered) > max(3*m.interval, 3*time.Second)
}

// refresh reads the first page, and the open page.
func (m model) refresh() tea.Msg {
	var r refreshed
	r.err = m.client.read(m.ctx, "?history=1", &r.overview)
	if load := m.load(); r.err == nil && load != nil {
		r.page = load().(answered)
	}
	return r
}

// load returns the command that reads the open page, nil if no page is open.
func (m model) load() tea.Cmd {
	if len(m.opened) == 0 {
		return nil
	}
	link := m.opened[len(m.opened)-1].address()
	return func() tea.Msg {
		page, err := m.client.page(m.ctx, link)
		return answered{link, page, err}
	}
}

// Update handles a message: a key, a paste, figures, the size of the screen, or the time of a
// refresh.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.opened = slices.Clone(m.opened) // the previous model must not change
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
		return m, m.refresh
	case answered:
		m.answer(msg)
	case refreshed:
		if m.failure = msg.err; msg.err == nil {
			m.figures.Overview, m.answered = msg.overview, time.Now()
			m.answer(msg.page)
		}
		return m, m.wait(m.interval, ticked{})
	case waited:
		return m, m.draws()
	}
	return m, nil
}

// answer stores a page in the open details with its address.
func (m *model) answer(a answered) {
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

// address returns the address of a page. The page of an informer has the keys that contain the
// filter.
func (d details) address() string {
	if d.filter != "" && strings.HasPrefix(d.link, "informer?") {
		return d.link + "&search=" + url.QueryEscape(d.filter)
	}
	return d.link
}

// open opens the page of a link.
func (m model) open(link string) (tea.Model, tea.Cmd) {
	if link == "" {
		return m, nil
	}
	m.opened = append(m.opened, details{link: link})
	return m, m.load()
}

// place returns the position of the user.
func (m *model) place() *place {
	if n := len(m.opened); n > 0 {
		return &m.opened[n-1].place
	}
	return &m.screens[m.screen].place
}

// table returns the table of the screen and the rows that are shown.
func (m model) table() (table, []row) {
	t, s := m.figures.screens()[m.screen], m.screens[m.screen]
	return t, matching(t.sorted(s.sorting), s.filter)
}

// shown returns the ids and the links of the rows or lines that are shown. The id of a line is its
// link.
func (m model) shown() (ids, links []string) {
	if n := len(m.opened); n > 0 {
		for _, l := range m.lines(m.opened[n-1]) {
			links = append(links, l.link)
		}
		return links, links
	}
	_, rows := m.table()
	for _, r := range rows {
		ids, links = append(ids, r.id), append(links, r.link)
	}
	return ids, links
}

// at returns the index of the row or line at the cursor: the nearest one with its id, or the one at
// its index if none has the id. It returns -1 if there are no rows or lines.
func (p place) at(ids []string) int {
	cursor := min(p.cursor, len(ids)-1)
	if p.id == "" {
		return cursor
	}
	for off := range ids {
		for _, i := range []int{cursor - off, cursor + off} {
			if i >= 0 && i < len(ids) && ids[i] == p.id {
				return i
			}
		}
	}
	return cursor
}
