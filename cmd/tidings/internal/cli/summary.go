package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// summarise prints the counts of the run.
func (d *demonstration) summarise(lasted time.Duration, found comparison) {
	p := d.screen.Palette()
	var folded uint64
	for _, t := range d.types {
		folded += t.handler().Folded
	}
	counts, note := d.lag.Counts(), ""
	seen := fmt.Sprintf("%s made, %s seen", view.Count(int64(counts.Written)),
		view.Count(int64(counts.Seen)))
	if folded > 0 {
		seen += fmt.Sprintf("; %s folded into later ones, because the output was slow",
			view.Counted(folded, "update", "updates"))
	}
	if d.faults != nil {
		seen += "; faults have undone or hidden the others"
		note = ", faults included"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %s\n%s", p.Dim("──"), view.Short(lasted),
		view.Table(d.printer.tally.Counts(), p))
	row := func(name, text string) {
		fmt.Fprintf(&b, "  %s %s\n", p.Dim(fmt.Sprintf("%-10s", name)), text)
	}
	row("changes", seen)
	if n := d.printer.heartbeats.Load(); n > 0 {
		row("heartbeats", view.Counted(n, "update", "updates")+" of nodes, not printed")
	}
	if counts.Seen > 0 {
		row("lag", fmt.Sprintf("%s median, %s for 99 of 100, %s at most, "+
			"write to handler%s",
			view.Short(d.lag.Quantile(0.5)), view.Short(d.lag.Quantile(0.99)),
			view.Short(d.lag.Quantile(1)), note))
	}
	if d.faults != nil {
		row("faults", strconv.Itoa(d.faults.happened))
	}
	row("first sync", fmt.Sprintf("%s in %s", view.Counted(d.initial, "object", "objects"),
		view.Short(d.synced)))
	row("peak heap", view.Bytes(d.peak)+", including the server in this process")
	paint := p.Green
	if len(found.differences) > 0 {
		paint = p.Red
	}
	row("comparison", paint(found.String()))
	d.screen.Print(b.String()) //nolint:errcheck // there is nothing left to stop
}
