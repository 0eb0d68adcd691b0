package view_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

func TestScreenKeepsItsStatusBelow(t *testing.T) {
	var both bytes.Buffer
	s := view.NewScreen(&both, &both, view.ScreenOptions{Terminal: true, Width: func() int { return 11 }})
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { s.Print("one\n") }, "one\n"},
		{func() { s.SetStatus("status") }, "status"},
		{func() { s.Print("two\n") }, "\r\x1b[Ktwo\nstatus"},
		{func() { s.Note("note") }, "\r\x1b[Knote\nstatus"},
		{func() { s.SetStatus("a status that is too long") }, "\r\x1b[Ka status …"},
		{func() { s.SetStatus("") }, "\r\x1b[K"},
		{func() { s.Print("three\n") }, "three\n"},
	} {
		both.Reset()
		step.do()
		if got := both.String(); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
}

func TestScreenWithoutATerminal(t *testing.T) {
	var out, err bytes.Buffer
	s := view.NewScreen(&out, &err, view.Detect(&out, &err, view.ColoursAuto, func(string) string { return "" }))
	s.SetStatus("status")
	s.Print("one\n")
	s.Note("note")
	if out.String() != "one\n" || err.String() != "note\n" {
		t.Errorf("out %q, err %q", out.String(), err.String())
	}
	if s.Live() || s.Palette().Colours || s.Width() != 0 {
		t.Error("a buffer is taken for a terminal")
	}
}

func TestColoursAreAsAskedFor(t *testing.T) {
	var out, err bytes.Buffer
	for _, c := range []struct {
		when, noColor string
		want          bool
	}{
		{view.ColoursAuto, "", false}, // a buffer is no terminal
		{view.ColoursAlways, "", true},
		{view.ColoursAlways, "1", true},
		{view.ColoursNever, "", false},
	} {
		o := view.Detect(&out, &err, c.when, func(name string) string { return map[string]string{"NO_COLOR": c.noColor}[name] })
		if o.Colours != c.want || o.ErrColours != c.want {
			t.Errorf("--color %s, NO_COLOR %q: %+v", c.when, c.noColor, o)
		}
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestScreenReportsAReaderThatHasGone(t *testing.T) {
	s := view.NewScreen(closedPipe{}, &bytes.Buffer{}, view.ScreenOptions{})
	if err := s.Print("one\n"); err == nil {
		t.Error("no error")
	}
}
