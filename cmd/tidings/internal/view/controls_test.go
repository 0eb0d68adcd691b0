package view_test

import (
	"strings"
	"testing"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

func TestControls(t *testing.T) {
	coloured := view.Palette{Colours: true}.Cyan("shop/Web") + view.Palette{Colours: true}.Dim("-1")
	for _, c := range []struct {
		keys  string
		shows string // one sign for each of the two lines
		state string
		end   bool
	}{
		{keys: "", shows: "++"},
		{keys: "x", shows: "++"},
		{keys: "p", shows: "--", state: "paused, 2 changes not shown"},
		{keys: "pp", shows: "++"},
		{keys: "/web-1\r", shows: "-+", state: "only /web-1"},
		{keys: "/weB\rp", shows: "--", state: "paused, 1 change not shown · only /web"},
		{keys: "/web\r/\r", shows: "++"},
		{keys: "/web\r\x1b", shows: "++"},
		{keys: "/ab\x7f\x7f\x7fq", shows: "++", state: "/q▏ · Enter filters, Esc leaves"},
		{keys: "/pq\x1b", shows: "++"},
		{keys: "q", shows: "++", end: true},
		{keys: "/\x03", shows: "++", state: "/▏ · Enter filters, Esc leaves", end: true},
	} {
		var controls view.Controls
		end := false
		for _, key := range c.keys {
			_, end = controls.Press(key)
		}
		var shows strings.Builder
		for _, line := range []string{"billing/mail-1\n", coloured + "\n"} {
			shows.WriteString(map[bool]string{true: "+", false: "-"}[controls.Shows(line)])
		}
		if state := strings.Join(controls.Status(), " · "); shows.String() != c.shows || state != c.state || end != c.end {
			t.Errorf("after %q: shows %s, want %s; %q, want %q; ends %v", c.keys, shows.String(), c.shows, state, c.state, end)
		}
	}
}

func TestControlsSayWhatAPauseHasHidden(t *testing.T) {
	var controls view.Controls
	controls.Press('p')
	controls.Shows("a line")
	controls.Shows("a line")
	if note, _ := controls.Press('p'); note != "2 changes were not shown" {
		t.Errorf("got %q", note)
	}
}
