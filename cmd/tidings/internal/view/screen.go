package view

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// ScreenOptions say what the streams of a [Screen] are. The zero value is two files.
type ScreenOptions struct {
	// Terminal says that out is a terminal: the status line lives there.
	Terminal bool
	// Colours says whether to colour what goes to out.
	Colours bool
	// ErrTerminal and ErrColours say the same of err.
	ErrTerminal, ErrColours bool
	// Width returns how many characters fit on a line of the terminal; nil, or 0,
	// means any number.
	Width func() int
}

// When there are colours.
const (
	// ColoursAuto is on a terminal, unless the environment's NO_COLOR is set or its
	// TERM is dumb.
	ColoursAuto = "auto"
	// ColoursAlways and ColoursNever are whatever there is.
	ColoursAlways, ColoursNever = "always", "never"
)

// IsColours reports whether a word says when there are colours.
func IsColours(when string) bool {
	return when == ColoursAuto || when == ColoursAlways || when == ColoursNever
}

// Detect says what two streams are, with colours when that word says.
func Detect(out, err io.Writer, colours string, getenv func(string) string) ScreenOptions {
	outFile, errFile := terminalFile(out), terminalFile(err)
	able := getenv("TERM") != "dumb"
	wanted := colours == ColoursAlways || colours == ColoursAuto && able && getenv("NO_COLOR") == ""
	always := colours == ColoursAlways
	o := ScreenOptions{
		Terminal: outFile != nil && able, ErrTerminal: errFile != nil && able,
		Colours: wanted && (always || outFile != nil), ErrColours: wanted && (always || errFile != nil),
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

func terminalFile(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

const escEraseLine = "\r\x1b[K"

// Screen prints lines to out, and notes to err, above a status line. Nothing that it is given
// reaches a stream without [Clean].
type Screen struct {
	o        ScreenOptions
	palette  Palette
	notes    Palette
	mu       sync.Mutex // guards the rest, and writing
	out, err io.Writer
	status   string // "" for none
	drawn    bool   // the status line stands on the terminal
	progress bool   // a progress line does
	failure  error  // of the first write to out that failed
}

// NewScreen returns a screen on two streams.
func NewScreen(out, err io.Writer, o ScreenOptions) *Screen {
	return &Screen{o: o, palette: Palette{o.Colours}, notes: Palette{o.ErrColours}, out: out, err: err}
}

// Palette returns the colours of what is printed.
func (s *Screen) Palette() Palette { return s.palette }

// NotePalette returns the colours of notes.
func (s *Screen) NotePalette() Palette { return s.notes }

// Live reports whether there is a status line.
func (s *Screen) Live() bool { return s.o.Terminal }

// ErrLive reports whether progress is shown in place.
func (s *Screen) ErrLive() bool { return s.o.ErrTerminal }

// Close takes the status line and the progress away. Printing goes on to work.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.eraseLocked(&b)
	s.status = ""
	s.writeLocked(b.String())
}

// Width returns how many characters fit on a line, 0 meaning any number.
func (s *Screen) Width() int {
	if s.o.Width == nil || !s.o.Terminal {
		return 0
	}
	return s.o.Width()
}

// Print writes whole lines to out. It returns the error of the first write that
// failed: a reader that has gone away wants no more.
func (s *Screen) Print(lines string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.eraseLocked(&b)
	b.WriteString(Clean(lines, s.o.Colours))
	s.drawLocked(&b)
	s.writeLocked(b.String())
	return s.failure
}

// Note writes a line to err.
func (s *Screen) Note(line string) {
	s.NoteText(line + "\n")
}

// NoteText writes whole lines to err.
func (s *Screen) NoteText(lines string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.eraseLocked(&b)
	s.writeLocked(b.String())
	io.WriteString(s.err, Clean(lines, s.o.ErrColours)) //nolint:errcheck // there is nowhere to report it
	b.Reset()
	s.drawLocked(&b)
	s.writeLocked(b.String())
}

// Progress shows a line about something that takes long, in place of the one before
// where err is a terminal; "" ends it.
func (s *Screen) Progress(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line = Clean(line, s.o.ErrColours)
	text := line + "\n"
	switch {
	case s.o.ErrTerminal && (s.progress || line != ""):
		text = escEraseLine + line
	case line == "":
		return
	}
	s.progress = s.o.ErrTerminal && line != ""
	io.WriteString(s.err, text) //nolint:errcheck // there is nowhere to report it
}

// endProgressLocked takes a progress line away before something else is written.
func (s *Screen) endProgressLocked() {
	if s.progress {
		io.WriteString(s.err, escEraseLine) //nolint:errcheck // there is nowhere to report it
		s.progress = false
	}
}

// SetStatus replaces the status line; "" removes it. Without a terminal it does
// nothing.
func (s *Screen) SetStatus(status string) {
	if !s.o.Terminal {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.eraseLocked(&b)
	s.status = Clean(status, s.o.Colours)
	s.drawLocked(&b)
	s.writeLocked(b.String())
}

// Log returns err as a writer of whole lines, for a logger.
func (s *Screen) Log() io.Writer { return noteWriter{s} }

type noteWriter struct{ screen *Screen }

func (w noteWriter) Write(p []byte) (int, error) {
	w.screen.NoteText(string(p))
	return len(p), nil
}

func (s *Screen) eraseLocked(b *strings.Builder) {
	s.endProgressLocked()
	if s.drawn {
		b.WriteString(escEraseLine)
		s.drawn = false
	}
}

func (s *Screen) drawLocked(b *strings.Builder) {
	if s.status == "" {
		return
	}
	width := s.Width()
	if width > 1 {
		width-- // a full line would wrap on some terminals
	}
	b.WriteString(clipped(s.status, width))
	s.drawn = true
}

func (s *Screen) writeLocked(text string) {
	if text == "" || s.failure != nil {
		return
	}
	if _, err := io.WriteString(s.out, text); err != nil {
		s.failure = err
	}
}
