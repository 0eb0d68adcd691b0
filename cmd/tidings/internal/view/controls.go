package view

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// KeyInterrupt is the key of Ctrl-C.
const KeyInterrupt = '\x03'

const (
	keyEscape    = '\x1b'
	keyBackspace = '\x7f'
	// maxFilter is how long the text of a filter may be.
	maxFilter = 40
)

// Controls are what a user has chosen with keys: p pauses, / asks for a text that lines have to
// contain, q and Ctrl-C end. It may be used from any goroutine; its zero value is ready.
type Controls struct {
	mu     sync.Mutex // guards the rest
	paused bool
	held   int64  // changes that were not shown since the pause
	filter string // in lower case; "" for none
	typing bool   // keys are the text of the filter
	typed  string
}

// Press takes a key. It reports whether the key ends the command. note is a line to print, "" for
// none.
func (c *Controls) Press(key rune) (note string, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case key == KeyInterrupt:
		return "", true
	case c.typing:
		c.typeLocked(key)
	case key == 'q':
		return "", true
	case key == '/':
		c.typing, c.typed = true, ""
	case key == keyEscape:
		c.filter = ""
	case key == 'p' || key == ' ':
		if c.paused = !c.paused; !c.paused && c.held > 0 {
			note = Counted(c.held, "change was", "changes were") + " not shown"
		}
		c.held = 0
	}
	return note, false
}

func (c *Controls) typeLocked(key rune) {
	switch {
	case key == '\r' || key == '\n':
		c.typing, c.filter = false, strings.ToLower(c.typed)
	case key == keyEscape:
		c.typing = false
	case key == keyBackspace || key == '\b':
		_, size := utf8.DecodeLastRuneInString(c.typed)
		c.typed = c.typed[:len(c.typed)-size]
	case unicode.IsPrint(key) && utf8.RuneCountInString(c.typed) < maxFilter:
		c.typed += string(key)
	}
}

// Shows reports whether to print the line of a change.
func (c *Controls) Shows(line string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !strings.Contains(strings.ToLower(uncoloured(line)), c.filter) {
		return false
	}
	if c.paused {
		c.held++
	}
	return !c.paused
}

// Status returns the parts of the status line about the choices.
func (c *Controls) Status() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.typing {
		return []string{"/" + c.typed + "▏", "Enter filters, Esc leaves"}
	}
	var parts []string
	if c.paused {
		parts = append(parts, "paused, "+Counted(c.held, "change", "changes")+" not shown")
	}
	if c.filter != "" {
		parts = append(parts, "only /"+c.filter)
	}
	return parts
}

// uncoloured returns a line without the escape sequences of a Palette.
func uncoloured(line string) string {
	for _, code := range escapes {
		line = strings.ReplaceAll(line, code, "")
	}
	return line
}
