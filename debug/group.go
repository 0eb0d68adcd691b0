package debug

import (
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/internal/see/gather"
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
	// Odd are the slots that move, or are not covered, or late, up to maxOdd, and MoreOdd counts
	// the others.
	Odd     []shard.Entry `json:"-"`
	MoreOdd int           `json:"-"`
}

// maxOdd bounds the rows of slots on a page.
const maxOdd = 32

func groupRow(h shard.Health) GroupRow {
	return GroupRow{h, text(h.Map), text(h.Polling), text(h.LastError)}
}

func (h *Handler) groupPage(r *http.Request, all *gather.Figures) (any, error) {
	name := r.FormValue("name")
	var names []string
	for _, g := range all.Groups {
		row := groupRow(g.Health)
		if row.Lease != name {
			names = append(names, row.Lease)
			continue
		}
		f := GroupFigures{
			GroupRow: row, Problems: sorted(groupProblems(row.Health, now())), Slots: g.Map(),
			Colors: map[string]int{},
		}
		for i, m := range row.Members {
			f.Colors[m.Identity] = i % gridColors
		}
		for _, e := range f.Slots {
			switch {
			case e.Controller != "":
				f.Controllers = append(f.Controllers, e)
			case e.Cover == shard.Covered && e.Next == "":
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

// coverClasses are the classes of covers in the style sheet.
var coverClasses = map[shard.Cover]string{
	shard.Nobody: " uncovered nobody", shard.NotReady: " uncovered", shard.Late: " late",
}

// grid draws slots, coloured by their owners. A slot that is not covered is empty, a late one has a
// frame, and one that moves a dot.
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
		class += coverClasses[e.Cover]
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
		text += fmt.Sprintf("%s for %s, epoch %d, weight %d", e.Owner, format.Short(e.Age), e.Epoch,
			e.Weight)
	}
	if cover := coverText(e); cover != "" {
		text += ", " + cover
	}
	if e.Next != "" {
		text += ", moves to " + e.Next + " for " + format.Short(e.MovingFor)
	}
	return text
}

// coverText describes an entry that is not covered, or late: "" of others.
func coverText(e shard.Entry) string {
	if e.Cover == shard.Covered {
		return ""
	}
	text := fmt.Sprintf("%s for %s", e.Cover, format.Short(e.CoverFor))
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// isUncovered reports whether no member calls for an entry.
func isUncovered(e shard.Entry) bool { return e.Cover == shard.Nobody || e.Cover == shard.NotReady }
