package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRecording(t *testing.T) {
	r := &recording{columns: 10, rows: 3}
	for i, text := range []string{
		"── \x1b[2mdim\x1b[0m & <b>\r\n", "status", "\r\x1b[", "Knext\r\nst\xc3", "\xa4tus", "\r\x1b[Ktwelve chars\r\n",
	} {
		r.write(text, time.Duration(i)*time.Second)
	}
	var got []string
	for _, l := range r.lines {
		got = append(got, l.text())
	}
	if want := []string{"── dim & <", "b>", "next", "twelve cha", "rs"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	var statuses []string
	for _, m := range r.moments {
		statuses = append(statuses, m.status.text())
	}
	if want := []string{"", "status", "status", "st", "stätus", ""}; !slices.Equal(statuses, want) {
		t.Errorf("statuses %q, want %q", statuses, want)
	}
	if style := r.lines[0][1]; style != (span{"2", "dim"}) {
		t.Errorf("the second span is %q", style)
	}

	svg := r.svg()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{
		`<tspan class="d">dim</tspan> &amp; &lt;`,
		// Two lines, then the status line below them; later lines scroll.
		"@keyframes place{0.00%{transform:translateY(36px)}}",
		"@keyframes scroll{0.00%{transform:translateY(0px)}27.27%{transform:translateY(-18px)}45.45%{transform:translateY(-54px)}}",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
}
