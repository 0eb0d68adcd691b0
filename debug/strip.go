package debug

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/format"
)

// The size of a strip, in units that the style sheet stretches.
const stripWidth, stripHeight = 600, 14

// strip draws states over time, up to now: each as wide as it was long.
func strip(history []health.Transition) template.HTML {
	if len(history) == 0 {
		return ""
	}
	end := now()
	whole := max(end.Sub(history[0].At), time.Second)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="strip" role="img" aria-label="States of the last %s" viewBox="0 0 %d %d" `+
		`preserveAspectRatio="none">`, format.Short(whole), stripWidth, stripHeight)
	for i, at := range history {
		until := end
		if i+1 < len(history) {
			until = history[i+1].At
		}
		x := stripWidth * float64(at.At.Sub(history[0].At)) / float64(whole)
		width := stripWidth * float64(until.Sub(at.At)) / float64(whole)
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="0" width="%.1f" height="%d">`+
			`<title>%s from %s for %s</title></rect>`,
			stripClass(at.State), min(x, stripWidth-2), max(width, 2), stripHeight,
			template.HTMLEscapeString(string(at.State)), format.Clock(at.At),
			format.Short(max(0, until.Sub(at.At))))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // the states are escaped, the rest are numbers
}

// stripClass returns the class of a state in the style sheet.
func stripClass(s health.State) string {
	switch {
	case s.Failing(), s == health.StateStopped:
		return "failing"
	case s == health.StateWatching:
		return "following"
	}
	return "between"
}
