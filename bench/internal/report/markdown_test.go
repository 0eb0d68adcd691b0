package report

import (
	"strings"
	"testing"

	"github.com/tidings-go/tidings/bench/internal/work"
)

// TestMarkdown writes a table of three metrics.
func TestMarkdown(t *testing.T) {
	row := func(name, unit string, better work.Better, theirs, mine, dropIn []float64) *Row {
		return &Row{work.Metric{Name: name, Unit: unit, Better: better}, map[string][]float64{"client-go": theirs, "native": mine, "drop-in": dropIn}}
	}
	r := Report{Cases: []Result{{
		Case: work.Case{Work: "idle", Informers: 1_000, Handlers: 2},
		Rows: []*Row{
			row("CPU", "s", work.Lower, []float64{8e-6, 10e-6, 9e-6, 11e-6, 12e-6}, []float64{1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, []float64{10e-6, 8e-6, 9e-6, 11e-6, 12e-6}),
			row("rate", "/s", work.Higher, []float64{1000}, []float64{20_000}, []float64{500}),
			row("heap", "B", work.Lower, nil, []float64{2048}, []float64{0}),
			row("allocations", "", work.Lower, []float64{3}, []float64{0}, []float64{3}),
		},
	}}}
	var b strings.Builder
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	want := `
### Idle

| work | client-go | Tidings | drop-in | Tidings is better by | drop-in is better by |
| --- | ---: | ---: | ---: | ---: | ---: |
| **1,000 informers, 2 handlers** | | | | | |
| CPU | 10.00 µs (8.000 µs to 12.00 µs) | 1.000 µs | 10.00 µs (8.000 µs to 12.00 µs) | 10× | 1.0× |
| rate | 1.000 k/s | 20.00 k/s | 500.0 /s | 20× | 0.50× |
| heap | – | 2.000 KiB | 0 B | – | – |
| allocations | 3.000 | 0 | 3.000 | none left | 1.0× |
`
	if b.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", b.String(), want)
	}
}

// TestNotToldApart asks that a ratio says when the runs overlap.
func TestNotToldApart(t *testing.T) {
	row := &Row{work.Metric{Better: work.Lower}, map[string][]float64{
		"client-go": {10, 11, 12, 13, 14}, "native": {9, 11, 12, 14, 15}, "drop-in": {1, 1.1, 1.2, 1.3, 1.4},
	}}
	row.Samples["native"][2] = 12.5
	if got := row.ratio("native"); !strings.Contains(got, "not told apart") {
		t.Errorf("the ratio of runs that overlap is %q", got)
	}
	if got := row.ratio("drop-in"); got != "10×" {
		t.Errorf("the ratio of runs that do not overlap is %q", got)
	}
}
