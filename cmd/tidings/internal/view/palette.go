package view

// Palette colours text, or leaves it as it is: its zero value does.
type Palette struct {
	// Colours says whether to colour.
	Colours bool
}

const (
	escReset  = "\x1b[0m"
	escBold   = "\x1b[1m"
	escDim    = "\x1b[2m"
	escRed    = "\x1b[31m"
	escGreen  = "\x1b[32m"
	escYellow = "\x1b[33m"
	escCyan   = "\x1b[36m"
)

// escapes are all that a Palette writes.
var escapes = []string{escReset, escBold, escDim, escRed, escGreen, escYellow, escCyan}

func (p Palette) paint(code, text string) string {
	if !p.Colours || text == "" {
		return text
	}
	return code + text + escReset
}

// Dim is for what matters least.
func (p Palette) Dim(text string) string { return p.paint(escDim, text) }

// Bold is for what matters most.
func (p Palette) Bold(text string) string { return p.paint(escBold, text) }

// Good is for what came, and for what went well.
func (p Palette) Good(text string) string { return p.paint(escGreen, text) }

// Bad is for what went, and for what went wrong.
func (p Palette) Bad(text string) string { return p.paint(escRed, text) }

// Changed is for what changed.
func (p Palette) Changed(text string) string { return p.paint(escYellow, text) }

// Before is for a value that is no more.
func (p Palette) Before(text string) string { return p.paint(escRed, text) }

// After is for the value that took its place.
func (p Palette) After(text string) string { return p.paint(escGreen, text) }

// Name is for what something is called.
func (p Palette) Name(text string) string { return p.paint(escCyan, text) }
