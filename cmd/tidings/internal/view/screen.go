package view

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// ScreenOptions describe the streams of a [Screen]. The zero value means two files.
type ScreenOptions struct {
	// Terminal reports whether out is a terminal, which has a status line.
	Terminal bool
	// Colours and ErrColours report whether the output to out and to err has colours.
	Colours, ErrColours bool
	// Width returns the number of characters that fit on a line of the terminal; nil, or 0, means
	// any number.
	Width func() int
}

// The values of --color.
const (
	// ColoursAuto colours on a terminal, unless the environment sets NO_COLOR or TERM is dumb.
	ColoursAuto                 = "auto"
	ColoursAlways, ColoursNever = "always", "never"
)

// Detect returns the options for two streams.
func Detect(out, err io.Writer, colours string, getenv func(string) string) ScreenOptions {
	outFile, errFile := terminalFile(out), terminalFile(err)
	capable := getenv("TERM") != "dumb"
	colour := func(file *os.File) bool {
		return colours == ColoursAlways ||
			colours == ColoursAuto && file != nil && capable && getenv("NO_COLOR") == ""
	}
	o := ScreenOptions{
		Terminal: outFile != nil && capable, Colours: colour(outFile), ErrColours: colour(errFile),
	}
	if outFile != nil {
		o.Width = func() int {
			width, _, err := term.GetSize(int(outFile.Fd()))
			if err != nil {
				return 0
			}
			return width
		}
	}
	return o
}

// terminalFile returns the file of a stream that is a terminal, nil for other streams.
func terminalFile(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

const escEraseLine = "\r\x1b[K"

// Screen prints lines to out, and notes to err, above a status line. All output passes through
// [Clean]. It may be used from any goroutine.
type Screen struct {
	o        ScreenOptions
	mu       sync.Mutex // guards the rest, and writes to the streams
	out, err io.Writer
	status   string // "" for none
	drawn    bool   // the terminal shows the status line
	failure  error  // of the first failed write to out
}

// NewScreen returns a screen on two streams.
func NewScreen(out, err io.Writer, o ScreenOptions) *Screen {
	return &Screen{o: o, out: out, err: err}
}

// Palette returns the colours of out.
func (s *Screen) Palette() Palette { return Palette{s.o.Colours} }

// NotePalette returns the colours of err.
func (s *Screen) NotePalette() Palette { return Palette{s.o.ErrColours} }

// Live reports whether there is a status line.
func (s *Screen) Live() bool { return s.o.Terminal }

// Width returns the number of characters that fit on a line, 0 for any number.
func (s *Screen) Width() int {
	if s.o.Width == nil || !s.o.Terminal {
		return 0
	}
	return s.o.Width()
}

// Print writes whole lines to out. It returns the error of the first failed write.
func (s *Screen) Print(lines string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(s.eraseLocked() + Clean(lines, s.o.Colours) + s.drawLocked())
	return s.failure
}

// Note writes whole lines to err. It adds the last newline if it is missing.
func (s *Screen) Note(lines string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(s.eraseLocked())
	lines = Clean(strings.TrimSuffix(lines, "\n"), s.o.ErrColours) + "\n"
	io.WriteString(s.err, lines) //nolint:errcheck // there is no other stream to report the error
	s.writeLocked(s.drawLocked())
}

// SetStatus replaces the status line; "" removes it. Without a terminal it does nothing.
func (s *Screen) SetStatus(status string) {
	if !s.o.Terminal {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	erase := s.eraseLocked()
	s.status = Clean(status, s.o.Colours)
	s.writeLocked(erase + s.drawLocked())
}

// Write prints a text as Note does, for a logger.
func (s *Screen) Write(p []byte) (int, error) {
	s.Note(string(p))
	return len(p), nil
}

// eraseLocked returns the text that erases the status line.
func (s *Screen) eraseLocked() string {
	if !s.drawn {
		return ""
	}
	s.drawn = false
	return escEraseLine
}

// drawLocked returns the text that draws the status line.
func (s *Screen) drawLocked() string {
	if s.status == "" {
		return ""
	}
	s.drawn = true
	width := s.Width()
	if width > 1 {
		width-- // a full line would wrap on some terminals
	}
	return shortened(s.status, width)
}

func (s *Screen) writeLocked(text string) {
	if text != "" && s.failure == nil {
		_, s.failure = io.WriteString(s.out, text)
	}
}

// Palette colours text. The zero value leaves text unchanged.
type Palette struct {
	// Colours reports whether text is coloured.
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

// escapes are the escape sequences of a Palette.
var escapes = []string{escReset, escBold, escDim, escRed, escGreen, escYellow, escCyan}

func (p Palette) paint(code, text string) string {
	if !p.Colours || text == "" {
		return text
	}
	return code + text + escReset
}

// Dim is for the least important text.
func (p Palette) Dim(text string) string { return p.paint(escDim, text) }

// Bold is for the most important text.
func (p Palette) Bold(text string) string { return p.paint(escBold, text) }

// Red is for deleted objects, values before a change, and failures.
func (p Palette) Red(text string) string { return p.paint(escRed, text) }

// Green is for added objects, values after a change, and success.
func (p Palette) Green(text string) string { return p.paint(escGreen, text) }

// Yellow is for updates.
func (p Palette) Yellow(text string) string { return p.paint(escYellow, text) }

// Cyan is for names of objects.
func (p Palette) Cyan(text string) string { return p.paint(escCyan, text) }
