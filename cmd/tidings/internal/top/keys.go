package top

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// press takes a key.
func (m model) press(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	name := key.String()
	if name == "ctrl+c" {
		return m, tea.Quit
	}
	if m.typing != typesNothing {
		return m.typeKey(name, key.Text)
	}
	switch name {
	case "q":
		return m, tea.Quit
	case "1", "2", "3", "4", "5", "6":
		m.screen, m.opened = int(name[0]-'1'), nil
	case "tab":
		m.screen, m.opened = (m.screen+1)%len(m.screens), nil
	case "shift+tab":
		m.screen, m.opened = (m.screen+len(m.screens)-1)%len(m.screens), nil
	case "/":
		m.typing, m.typed = typesFilter, ""
	case "g":
		m.typing, m.typed = typesKey, ""
	case "esc", "backspace", "left":
		return m.back()
	case "enter", "right":
		return m.open(m.link())
	default:
		if len(m.opened) == 0 && len(key.Text) == 1 && key.Text >= "A" && key.Text <= "Z" {
			return m.sort(key.Text[0])
		}
		m.move(name)
	}
	return m, nil
}

// typeKey takes a key of a text.
func (m model) typeKey(name, text string) (tea.Model, tea.Cmd) {
	switch name {
	case "esc":
		m.typing = typesNothing
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.typed)
		m.typed = m.typed[:len(m.typed)-size]
	case "enter":
		typing := m.typing
		m.typing = typesNothing
		if typing == typesFilter {
			return m.setFilter(m.typed)
		}
		if key := strings.TrimSpace(m.typed); key != "" {
			return m.open(keyLink(key))
		}
	default:
		m.typed += view.Printable(text)
	}
	return m, nil
}

// back leaves out the filter, or closes the details.
func (m model) back() (tea.Model, tea.Cmd) {
	if m.filter() != "" {
		return m.setFilter("")
	}
	if n := len(m.opened); n > 0 {
		m.opened = m.opened[: n-1 : n-1]
	}
	return m, nil
}

// filter returns the text that rows or lines have to contain.
func (m model) filter() string {
	if n := len(m.opened); n > 0 {
		return m.opened[n-1].filter
	}
	return m.screens[m.screen].filter
}

func (m model) setFilter(filter string) (tea.Model, tea.Cmd) {
	n := len(m.opened)
	if n == 0 {
		m.screens[m.screen].filter = filter
		return m, nil
	}
	last := m.opened[n-1]
	last.filter, last.cursor, last.chosen = filter, 0, ""
	m.opened = append(m.opened[:n-1:n-1], last)
	return m, m.load()
}

// sort sorts the rows by the column that begins with a letter. If they are sorted by it, it reverses
// them.
func (m model) sort(letter byte) (tea.Model, tea.Cmd) {
	t, _ := m.table()
	for _, c := range t.columns {
		if c.name[0] != letter {
			continue
		}
		s := &m.screens[m.screen].sorting
		*s = sorting{by: letter, reversed: s.by == letter && !s.reversed}
	}
	return m, nil
}

// link returns the page of the row or the line at the cursor.
func (m model) link() string {
	if n := len(m.opened); n > 0 {
		d := m.opened[n-1]
		lines := m.lines(d)
		if at := d.at(lines); at >= 0 {
			return lines[at].link
		}
		return ""
	}
	_, rows := m.table()
	if at := m.screens[m.screen].at(rows); at >= 0 {
		return rows[at].link
	}
	return ""
}

// move moves the cursor.
func (m *model) move(key string) {
	n := len(m.opened)
	if n > 0 {
		d := m.opened[n-1]
		lines := m.lines(d)
		d.cursor = moved(d.at(lines), len(lines), m.space(), key)
		if d.chosen = ""; len(lines) > 0 {
			d.chosen = lines[d.cursor].link
		}
		m.opened = append(m.opened[:n-1:n-1], d)
		return
	}
	_, rows := m.table()
	c := &m.screens[m.screen]
	c.cursor = moved(c.at(rows), len(rows), m.space(), key)
	if len(rows) > 0 {
		c.id = rows[c.cursor].id
	}
}

// moved returns the place of a cursor among n after a key.
func moved(at, n, page int, key string) int {
	switch key {
	case "up", "k":
		at--
	case "down", "j":
		at++
	case "pgup", "ctrl+b":
		at -= page
	case "pgdown", "space", "ctrl+f":
		at += page
	case "home":
		at = 0
	case "end":
		at = n - 1
	}
	return max(0, min(at, n-1))
}
