package debug

import (
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/tidings-go/tidings/shard"
)

// GroupRow is a group of shards of an overview.
type GroupRow struct {
	shard.Health
	// MapError is the error of reading the map, and Polling the reason why the Leases are not
	// watched.
	MapError  string `json:"mapError,omitempty"`
	Polling   string `json:"polling,omitempty"`
	LastError string `json:"lastError,omitempty"`
}

// GroupFigures is the JSON form of the page of a group.
type GroupFigures struct {
	GroupRow
	Problems []Problem `json:"problems,omitempty"`
	// Slots are the entries of the map, controllers among them; missing before there is a map.
	Slots []shard.Entry `json:"slots,omitempty"`
	// Grid is a drawing of the slots. Colors are the numbers of the members' colours in it, by
	// identity.
	Grid   template.HTML  `json:"-"`
	Colors map[string]int `json:"-"`
	// Controllers are the entries of controllers.
	Controllers []shard.Entry `json:"-"`
	// Odd are the slots that move or are uncovered, up to maxOdd, and MoreOdd counts the others.
	Odd     []shard.Entry `json:"-"`
	MoreOdd int           `json:"-"`
}

// maxOdd bounds the rows of slots on a page.
const maxOdd = 32

func groupRow(g Group) GroupRow {
	h := g.Health()
	return GroupRow{h, text(h.Map), text(h.Polling), text(h.LastError)}
}

func (h *Handler) groupPage(r *http.Request) (any, error) {
	name := r.FormValue("name")
	var names []string
	for _, g := range h.o.Groups {
		row := groupRow(g)
		if row.Lease != name {
			names = append(names, row.Lease)
			continue
		}
		f := GroupFigures{
			GroupRow: row, Problems: groupProblems(row.Health, now()), Slots: g.Map(),
			Colors: map[string]int{},
		}
		for i, m := range row.Members {
			f.Colors[m.Identity] = i % gridColors
		}
		for _, e := range f.Slots {
			switch {
			case e.Controller != "":
				f.Controllers = append(f.Controllers, e)
			case e.Covered && e.Next == "":
			case len(f.Odd) == maxOdd:
				f.MoreOdd++
			default:
				f.Odd = append(f.Odd, e)
			}
		}
		f.Grid = grid(f.Slots, f.Colors)
		return f, nil
	}
	return nil, missing("group", name, names)
}

// gridColors is the number of colours of the style sheet. The other constants are sizes of a
// grid.
const (
	gridColors           = 8
	gridColumns, gridBox = 32, 16
)

// grid draws slots, coloured by their owners. An uncovered slot is empty, and a slot that moves
// has a mark.
func grid(slots []shard.Entry, colors map[string]int) template.HTML {
	if len(slots) == 0 {
		return ""
	}
	var b strings.Builder
	const rows = (shard.Count + gridColumns - 1) / gridColumns
	fmt.Fprintf(&b, `<svg class="grid" role="img" aria-label="Slots by owner" width="%d" height="%d" `+
		`viewBox="0 0 %[1]d %[2]d">`, gridColumns*gridBox, rows*gridBox)
	for _, e := range slots[:min(len(slots), shard.Count)] {
		x, y := e.Slot%gridColumns*gridBox, e.Slot/gridColumns*gridBox
		color, ok := colors[e.Owner]
		class := fmt.Sprint("owner", color)
		if !ok {
			class = "unowned"
		}
		if !e.Covered {
			class += " uncovered"
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%[4]d"><title>%[5]s</title></rect>`,
			class, x+1, y+1, gridBox-2, template.HTMLEscapeString(slotText(e)))
		if e.Next != "" {
			fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="3"/>`, x+gridBox/2, y+gridBox/2)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // the texts are escaped, the rest are numbers
}

func slotText(e shard.Entry) string {
	text := fmt.Sprintf("slot %d: ", e.Slot)
	if e.Owner == "" {
		text += "no owner"
	} else {
		text += fmt.Sprintf("%s for %s, epoch %d, load %v", e.Owner, short(e.Age), e.Epoch, e.Load)
	}
	if !e.Covered {
		text += ", uncovered for " + short(e.UncoveredFor)
	}
	if e.Next != "" {
		text += ", moves to " + e.Next + " for " + short(e.MovingFor)
	}
	return text
}

// percent returns a share of 1. It rounds down, so that 100 % is all.
func percent(share float64) string { return fmt.Sprintf("%d %%", int(share*100)) }

func groupProblems(h shard.Health, now time.Time) (found []Problem) {
	add := func(since time.Duration, format string, args ...any) {
		p := Problem{Of: "group " + h.Lease, Link: groupLink(h.Lease), What: fmt.Sprintf(format, args...)}
		if since > 0 {
			p.Since = now.Add(-since)
		}
		found = append(found, p)
	}
	if h.State == shard.Stopped {
		return nil
	}
	if h.Map != nil {
		add(0, "%v", h.Map)
	}
	if h.UncoveredFor > h.Tolerated {
		add(h.UncoveredFor, "leaves uncovered: %s", h.Uncovered)
	}
	if h.State == shard.Joining && h.LastError != nil {
		add(now.Sub(h.LastErrorAt), "cannot be joined: %v", h.LastError)
	}
	if h.Polling != nil {
		add(0, "is read now and then, as its Leases cannot be watched: %v", h.Polling)
	}
	return found
}
