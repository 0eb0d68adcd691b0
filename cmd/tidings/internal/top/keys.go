package top

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

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
			m.sort(key.Text[0])
		} else {
			m.move(name)
		}
	}
	return m, nil
}

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

// back removes the filter, or closes the details.
func (m model) back() (tea.Model, tea.Cmd) {
	if m.place().filter != "" {
		return m.setFilter("")
	}
	m.opened = m.opened[:max(0, len(m.opened)-1)]
	return m, nil
}

func (m model) setFilter(filter string) (tea.Model, tea.Cmd) {
	m.place().filter = filter
	return m, m.load()
}

// sort sorts the rows by the column that begins with a letter, or reverses them if they are sorted
// by that column.
func (m *model) sort(letter byte) {
	t, _ := m.table()
	for _, c := range t.columns {
		if s := &m.screens[m.screen].sorting; c.name[0] == letter {
			*s = sorting{by: letter, reversed: s.by == letter && !s.reversed}
		}
	}
}

// link returns the link of the row or the line at the cursor.
func (m model) link() string {
	ids, links := m.shown()
	if at := m.place().at(ids); at >= 0 {
		return links[at]
	}
	return ""
}

func (m *model) move(key string) {
	p := m.place()
	ids, _ := m.shown()
	at, last, page := p.at(ids), len(ids)-1, m.space()
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
		at = last
	}
	if p.cursor, p.id = max(0, min(at, last)), ""; last >= 0 {
		p.id = ids[p.cursor]
	}
}
