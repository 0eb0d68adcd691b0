package top

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// binding is what some keys do. The footer and the help screen are made from the bindings.
type binding struct {
	keys   string // their names, separated by spaces
	shown  string // the keys for the reader
	footer string // what they do, in a word; "" if the footer leaves them out
	what   string
	// tables is set if they work in tables only, and not in details.
	tables bool
	do     func(m model, key string) (tea.Model, tea.Cmd)
}

// bindings returns the keys, the most important ones first.
func bindings() []binding {
	return []binding{
		{keys: "?", shown: "?", footer: "help", what: "show the keys", do: model.help},
		{
			keys: "q ctrl+c", shown: "q", footer: "quit", what: "end, as Ctrl-C does",
			do: func(m model, _ string) (tea.Model, tea.Cmd) { return m, tea.Quit },
		},
		{
			keys: "up down k j pgup pgdown space ctrl+b ctrl+f home end", shown: "↑↓", footer: "move",
			what: "move the cursor, as `j`, `k`, Page Up, Page Down, Home and End do", do: model.move,
		},
		{
			keys: "enter right", shown: "Enter", footer: "open",
			what: "open the details of the row, or of the line with `›`",
			do:   func(m model, _ string) (tea.Model, tea.Cmd) { return m.open(m.link()) },
		},
		{
			keys: "esc backspace left", shown: "Esc", footer: "back",
			what: "remove the filter, or go back", do: model.back,
		},
		{
			keys: "1 2 3 4 5 6 tab shift+tab", shown: "1-6", footer: "screen",
			what: "show the problems, informers, handlers, controllers, leases or groups of shards; " +
				"Tab shows the next ones",
			do: model.show,
		},
		{
			keys: "/", shown: "/", footer: "filter",
			what: "ask for a text: only rows and lines that contain it are shown. In the details of an " +
				"informer, it also selects the keys",
			do: model.ask,
		},
		{
			keys: "g", shown: "g", footer: "key",
			what: "ask for the key of an object, and show all information about it", do: model.ask,
		},
		{
			keys:  "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z",
			shown: "A-Z", footer: "sort", tables: true,
			what: "sort by the column that begins with the letter; a second time sorts in the other " +
				"direction",
			do: model.sort,
		},
	}
}

func (m model) press(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	name := key.String()
	if len(key.Text) == 1 && key.Text >= "A" && key.Text <= "Z" {
		name = key.Text
	}
	if m.typing != typesNothing && name != "ctrl+c" {
		return m.typeKey(name, key.Text)
	}
	isHelp := m.isHelp
	m.isHelp = false
	for _, b := range bindings() {
		if slices.Contains(strings.Fields(b.keys), name) && !(b.tables && len(m.opened) > 0) &&
			(!isHelp || b.footer == "quit") {
			return b.do(m, name)
		}
	}
	return m, nil
}

// help shows the keys, until the next one is pressed.
func (m model) help(string) (tea.Model, tea.Cmd) {
	m.isHelp = true
	return m, nil
}

func (m model) show(key string) (tea.Model, tea.Cmd) {
	n := len(m.screens)
	switch m.opened = nil; key {
	case "tab":
		m.screen = (m.screen + 1) % n
	case "shift+tab":
		m.screen = (m.screen + n - 1) % n
	default:
		m.screen = int(key[0] - '1')
	}
	return m, nil
}

// ask begins to read a text.
func (m model) ask(key string) (tea.Model, tea.Cmd) {
	m.typing, m.typed = typesFilter, ""
	if key == "g" {
		m.typing = typesKey
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
func (m model) back(string) (tea.Model, tea.Cmd) {
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
func (m model) sort(letter string) (tea.Model, tea.Cmd) {
	t, _ := m.table()
	for _, c := range t.columns {
		if s := &m.screens[m.screen].sorting; c.name[:1] == letter {
			*s = sorting{by: letter[0], reversed: s.by == letter[0] && !s.reversed}
		}
	}
	return m, nil
}

// link returns the link of the row or the line at the cursor.
func (m model) link() string {
	ids, links := m.shown()
	if at := m.place().at(ids); at >= 0 {
		return links[at]
	}
	return ""
}

func (m model) move(key string) (tea.Model, tea.Cmd) {
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
	return m, nil
}
