package main

import (
	"cmp"
	"fmt"
	"html"
	"strings"
	"time"
)

const (
	// charWidth and lineHeight are the size of a character, in pixels.
	charWidth, lineHeight = 7.8, 18
	// margin is the space around the text.
	margin = 12
	// frame is the shortest time between two states of the picture.
	frame = 100 * time.Millisecond
	// hold is the time for which the end is shown before the picture begins again.
	hold = 6 * time.Second
)

// classes are the styles of the command, as classes of the SVG.
var classes = map[string]string{
	"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c",
}

const style = `
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d5dbe3;white-space:pre}
.b{font-weight:bold}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}.c{fill:#76b7ff}
.m{animation-timing-function:step-end;animation-iteration-count:infinite}
`

// track is one list of keyframes: the vertical position of a group over time.
type track struct {
	name  string
	total time.Duration
	keys  strings.Builder
	last  int
	begun bool
}

func (t *track) set(at time.Duration, y int) {
	if t.begun && t.last == y {
		return
	}
	t.begun, t.last = true, y
	fmt.Fprintf(&t.keys, "%.2f%%{transform:translateY(%dpx)}", 100*at.Seconds()/t.total.Seconds(), y)
}

// rule returns the CSS of the track. Without animation the group is at its last position.
func (t *track) rule() string {
	return fmt.Sprintf("@keyframes %[1]s{%[2]s}\n#%[1]s{transform:translateY(%[3]dpx);"+
		"animation-name:%[1]s;animation-duration:%.1[4]fs}\n",
		t.name, t.keys.String(), t.last, t.total.Seconds())
}

// svg draws the recording.
func (r *recording) svg() string {
	moments := r.frames()
	total := hold
	if len(moments) > 0 {
		total += moments[len(moments)-1].at
	}
	scroll := &track{name: "scroll", total: total}
	place := &track{name: "place", total: total}
	change := &track{name: "change", total: total}
	var statuses []line
	for _, m := range moments {
		if n := len(statuses); n == 0 || statuses[n-1].text() != m.status.text() {
			statuses = append(statuses, m.status)
		}
		row := min(m.lines, r.rows-1)
		scroll.set(m.at, (row-m.lines)*lineHeight)
		place.set(m.at, row*lineHeight)
		change.set(m.at, -(len(statuses)-1)*lineHeight)
	}
	width := float64(r.columns)*charWidth + 2*margin
	height := r.rows*lineHeight + 2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" `+
		`viewBox="0 0 %.0f %d" width="%.0f" height="%d">`, width, height, width, height)
	fmt.Fprintf(&b, "<style>%s%s%s%s</style>\n", style, scroll.rule(), place.rule(), change.rule())
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+
		`<svg x="%d" y="%d" width="%.0f" height="%d">`+"\n",
		margin, margin, width-2*margin, r.rows*lineHeight)
	b.WriteString(`<g class="m" id="scroll">` + "\n")
	drawLines(&b, r.lines)
	// The rectangle hides the lines that are still to come.
	fmt.Fprintf(&b, `</g><g class="m" id="place"><rect width="100%%" height="%d" fill="#0d1117"/>`+
		`<svg width="100%%" height="%d"><g class="m" id="change">`+"\n", r.rows*lineHeight, lineHeight)
	drawLines(&b, statuses)
	b.WriteString("</g></svg></g></svg></svg>\n")
	return b.String()
}

// frames returns the moments that are at least a frame apart, from the first output on.
func (r *recording) frames() []moment {
	var frames []moment
	for _, m := range r.moments {
		m.at -= r.moments[0].at
		if n := len(frames); n > 0 && m.at < frames[n-1].at+frame {
			m.at = frames[n-1].at
			frames[n-1] = m
			continue
		}
		frames = append(frames, m)
	}
	return frames
}

func drawLines(b *strings.Builder, lines []line) {
	for i, l := range lines {
		if l.width() == 0 {
			continue
		}
		fmt.Fprintf(b, `<text y="%d" textLength="%.1f">`, i*lineHeight+13, float64(l.width())*charWidth)
		for _, s := range l {
			text := html.EscapeString(s.text)
			if class := classes[cmp.Or(s.style, "0")]; class != "" {
				text = fmt.Sprintf(`<tspan class="%s">%s</tspan>`, class, text)
			}
			b.WriteString(text)
		}
		b.WriteString("</text>\n")
	}
}
