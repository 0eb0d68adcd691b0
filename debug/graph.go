package debug

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidings-go/tidings/internal/see/format"
)

// Graph is a figure over the last hour, or since the handler was made.
type Graph struct {
	Title string `json:"title"`
	// Unit is "", "bytes" or "seconds".
	Unit   string      `json:"unit,omitempty"`
	Values Series      `json:"values"`
	Times  []time.Time `json:"-"`
	Marks  []Mark      `json:"-"`
}

// History are the graphs of a page. The values of a graph end at To, and have a distance of Period
// seconds.
type History struct {
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Period float64   `json:"period"`
	Graphs []Graph   `json:"graphs"`
	// Marks are sorted by time.
	Marks []Mark `json:"marks,omitempty"`
}

// UnmarshalJSON reads the JSON form, with the times and marks of each graph.
func (h *History) UnmarshalJSON(data []byte) error {
	type form History
	if err := json.Unmarshal(data, (*form)(h)); err != nil {
		return err
	}
	for i := range h.Graphs {
		g := &h.Graphs[i]
		g.Marks, g.Times = h.Marks, make([]time.Time, len(g.Values))
		for n := range g.Times {
			before := time.Duration(float64(len(g.Times)-1-n) * h.Period * float64(time.Second))
			g.Times[n] = h.To.Add(-before)
		}
	}
	return nil
}

// Mark is something that happened in the ten seconds before a point.
type Mark struct {
	At time.Time `json:"at"`
	// Kind is "relist", "watch", "term" or "move".
	Kind string `json:"kind"`
	What string `json:"what"`
}

// markKinds say which growth of which figure is a mark.
var markKinds = []struct {
	kind, figure, what string
	needsEarlier       bool
}{
	{"relist", "lists anew", "lists anew", false},
	{"watch", "watches anew", "watches anew", false},
	{"term", "terms", "has another holder", true},
	{"move", "in", "gives entries to this process", false},
	{"move", "out", "takes entries from this process", false},
}

// maxNamed bounds the names in a mark.
const maxNamed = 3

// markHeights are the heights of marks. Frequent ones are short, so that they do not hide the values.
var markHeights = map[string]int{"watch": 8, "relist": 18, "term": graphHeight, "move": graphHeight}

// marks returns the marks of tracks, one for each kind and point.
func (h *history) marks(of ...string) []Mark {
	var all []Mark
	for _, kind := range markKinds {
		names := map[int][]string{}
		for name, t := range h.tracks {
			if !slices.ContainsFunc(of, func(of string) bool { return isOf(name, of) }) {
				continue
			}
			grown, earlier := t.series[kind.figure], t.last[kind.figure]
			for _, n := range grown {
				earlier -= float64(n)
			}
			for i, n := range grown {
				if n == 0 {
					continue
				}
				if earlier > 0 || !kind.needsEarlier {
					at := len(h.times) - len(grown) + i
					_, short, _ := strings.Cut(name, " ")
					names[at] = append(names[at], short)
				}
				earlier += float64(n)
			}
		}
		for at, of := range names {
			slices.Sort(of)
			text := strings.Join(of[:min(len(of), maxNamed)], ", ")
			if more := len(of) - maxNamed; more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
			all = append(all, Mark{h.times[at], kind.kind, text + " " + kind.what})
		}
	}
	slices.SortFunc(all, func(a, b Mark) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.What, b.What))
	})
	return all
}

// drawn returns the history of a page: graphs, with marks of tracks.
func (s *sampler) drawn(graphs func(h *history) []Graph, marks ...string) History {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.history
	f := History{Period: historyPeriod.Seconds(), Graphs: graphs(h), Marks: h.marks(marks...)}
	if n := len(h.times); n > 0 {
		f.From, f.To = h.times[0], h.times[n-1]
	}
	for i := range f.Graphs {
		f.Graphs[i].Times, f.Graphs[i].Marks = slices.Clone(h.times), f.Marks
	}
	return f
}

// overviewGraphs are the graphs of the first page: of all informers and controllers together.
func overviewGraphs(h *history) []Graph {
	return []Graph{
		{Title: "Oldest queued key", Unit: seconds, Values: h.of("controller ", "age", largest)},
		{Title: "Errors a second", Values: h.of("controller ", "errors", add)},
		{Title: "Calls a second", Values: h.of("controller ", "calls", add)},
		{Title: "Lag", Unit: seconds, Values: lagOf(h, "controller ")},
		{Title: "Notifications a second", Values: h.of("informer ", "delivered", add)},
		{Title: "Memory of the heap", Unit: inBytes, Values: h.of("process", "heap", add)},
	}
}

func controllerGraphs(name string) func(h *history) []Graph {
	of := "controller " + name
	return func(h *history) []Graph {
		return []Graph{
			{Title: "Oldest queued key", Unit: seconds, Values: h.of(of, "age", add)},
			{Title: "Queued keys", Values: h.of(of, "queued", add)},
			{Title: "Calls a second", Values: h.of(of, "calls", add)},
			{Title: "Errors a second", Values: h.of(of, "errors", add)},
			{Title: "Lag", Unit: seconds, Values: lagOf(h, of)},
		}
	}
}

func informerGraphs(name string) func(h *history) []Graph {
	of := "informer " + name
	return func(h *history) []Graph {
		return []Graph{
			{Title: "Objects", Values: h.of(of, "objects", add)},
			{Title: "Notifications a second", Values: h.of(of, "delivered", add)},
			{Title: "Waiting notifications", Values: h.of(of, "pending", add)},
		}
	}
}

// lagOf returns the mean lag in each point.
func lagOf(h *history, of string) Series {
	return quotient(h.of(of, "lag sum", add), h.of(of, "lag count", add))
}

// The units of graphs.
const seconds, inBytes = "seconds", "bytes"

// MarshalJSON returns the values with three digits, and null for a point without a value.
func (s Series) MarshalJSON() ([]byte, error) {
	form := make([]*json.Number, len(s))
	for i, v := range s {
		if !math.IsNaN(v) {
			form[i] = new(json.Number(strconv.FormatFloat(v, 'g', 3, 64)))
		}
	}
	return json.Marshal(form)
}

// UnmarshalJSON reads the JSON form.
func (s *Series) UnmarshalJSON(data []byte) error {
	var form []*float64
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	*s = make(Series, len(form))
	for i, v := range form {
		(*s)[i] = math.NaN()
		if v != nil {
			(*s)[i] = *v
		}
	}
	return nil
}

// extremes returns the indexes of the last, the lowest and the highest value. ok is false without
// one.
func (s Series) extremes() (last, lowest, highest int, ok bool) {
	for i, v := range s {
		if math.IsNaN(v) {
			continue
		}
		if !ok || v < s[lowest] {
			lowest = i
		}
		if !ok || v > s[highest] {
			highest = i
		}
		last, ok = i, true
	}
	return last, lowest, highest, ok
}

// Text returns a value with its unit.
func (g Graph) Text(value float64) string {
	switch g.Unit {
	case seconds:
		return format.Short(time.Duration(value * float64(time.Second)))
	case inBytes:
		return format.Bytes(uint64(value))
	}
	return format.Number(value)
}

// at returns the time of a value.
func (g Graph) at(i int) time.Time {
	return g.Times[len(g.Times)-len(g.Values)+i]
}

// Summary has the last value, and the extremes with their times.
func (g Graph) Summary() string {
	last, lowest, highest, ok := g.Values.extremes()
	if !ok {
		return "no value yet"
	}
	text := g.Text(g.Values[last]) + " now"
	if last < len(g.Values)-1 {
		text = g.Text(g.Values[last]) + " at " + format.Clock(g.at(last))
	}
	if g.Values[lowest] == g.Values[highest] {
		return text + ", and since " + format.Clock(g.at(0))
	}
	return fmt.Sprintf("%s, highest %s at %s, lowest %s", text, g.Text(g.Values[highest]),
		format.Clock(g.at(highest)), g.Text(g.Values[lowest]))
}

// HasValues reports whether it has a value other than 0, so that there is something to draw.
func (g Graph) HasValues() bool {
	_, lowest, highest, ok := g.Values.extremes()
	return ok && (g.Values[lowest] != 0 || g.Values[highest] != 0)
}

// Top returns the value at the upper edge.
func (g Graph) Top() string { return g.Text(g.top()) }

func (g Graph) top() float64 {
	_, _, highest, ok := g.Values.extremes()
	if !ok || g.Values[highest] == 0 {
		return 1
	}
	return g.Values[highest]
}

// The size of a drawing, in units that the style sheet stretches.
const graphWidth, graphHeight = 720, 120

// leastPoints is the number of points of the whole width, until there are more.
const leastPoints = 30

// From and To are the times at both edges.
func (g Graph) From() time.Time {
	return g.To().Add(-time.Duration(g.points()-1) * historyPeriod)
}

// To is the time of the newest value.
func (g Graph) To() time.Time {
	if len(g.Times) == 0 {
		return time.Time{}
	}
	return g.Times[len(g.Times)-1]
}

// points returns the number of points of the whole width.
func (g Graph) points() int { return max(len(g.Times), leastPoints) }

// x returns the place of a point, counted from the end.
func (g Graph) x(fromEnd int) float64 {
	return graphWidth * (1 - float64(fromEnd)/float64(g.points()-1))
}

// Drawing draws the values, and the marks as lines from the upper edge.
func (g Graph) Drawing() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg role="img" aria-label="%s" viewBox="0 0 %d %d" preserveAspectRatio="none">`,
		template.HTMLEscapeString(g.Title+": "+g.Summary()), graphWidth, graphHeight)
	for _, m := range g.Marks {
		n, _ := slices.BinarySearchFunc(g.Times, m.At, time.Time.Compare)
		fmt.Fprintf(&b, `<line class="mark %s" x1="%.1f" x2="%.1[2]f" y1="0" y2="%d"><title>%s %s</title></line>`,
			m.Kind, g.x(len(g.Times)-1-n), markHeights[m.Kind], format.Clock(m.At),
			template.HTMLEscapeString(m.What))
	}
	fmt.Fprintf(&b, `<path d="%s"/></svg>`, line(g.Values, g.top(), graphHeight, g.x))
	return template.HTML(b.String()) //nolint:gosec // the texts are escaped, the rest are numbers
}

// line returns the path of values. It has a gap where there is none.
func line(values Series, top, height float64, x func(fromEnd int) float64) string {
	var b []byte
	isGap := true
	for i, v := range values {
		if math.IsNaN(v) {
			isGap = true
			continue
		}
		command := byte('L')
		if isGap {
			command = 'M'
		}
		b = strconv.AppendFloat(append(b, command), x(len(values)-1-i), 'f', 1, 64)
		b = strconv.AppendFloat(append(b, ' '), 1+(height-2)*(1-v/top), 'f', 1, 64)
		isGap = false
	}
	return string(b)
}

const sparkWidth, sparkHeight = 120, 24

// sparkline draws a series small, for a row of a table.
func sparkline(title string, s Series) template.HTML {
	if len(s) < 2 {
		return ""
	}
	last, lowest, highest, ok := s.extremes()
	if !ok {
		return ""
	}
	whole := format.Short(time.Duration(len(s)-1) * historyPeriod)
	text := template.HTMLEscapeString(fmt.Sprintf("%s in the last %s: %s at last, from %s to %s",
		title, whole, format.Number(s[last]), format.Number(s[lowest]), format.Number(s[highest])))
	top := max(s[highest], math.SmallestNonzeroFloat64)
	s = s.peaks(sparkWidth / 2)
	points := max(len(s), leastPoints)
	return template.HTML(fmt.Sprintf( //nolint:gosec // the text is escaped, the rest are numbers
		`<svg class="spark" role="img" aria-label="%s" width="%d" height="%d" viewBox="0 0 %[2]d %[3]d">`+
			`<title>%[1]s</title><path d="%[4]s"/></svg>`,
		text, sparkWidth, sparkHeight, line(s, top, sparkHeight, func(fromEnd int) float64 {
			return sparkWidth * (1 - float64(fromEnd)/float64(points-1))
		})))
}

// bars are blocks of eight heights.
const bars = "▁▂▃▄▅▆▇█"

// Bars draws the values as text of n characters at most, each the largest of its part. A part
// without a value is a space.
func (g Graph) Bars(n int) string {
	steps, top := []rune(bars), g.top()
	var b strings.Builder
	for _, v := range g.Values.peaks(n) {
		bar := ' '
		if !math.IsNaN(v) {
			bar = steps[max(0, min(int(v/top*float64(len(steps))), len(steps)-1))]
		}
		b.WriteRune(bar)
	}
	return b.String()
}

// peaks returns at most n values: the largest of each part.
func (s Series) peaks(n int) Series {
	each := (len(s) + n - 1) / n
	var peaks Series
	for part := range slices.Chunk(s, max(each, 1)) {
		_, _, highest, _ := part.extremes()
		peaks = append(peaks, part[highest])
	}
	return peaks
}
