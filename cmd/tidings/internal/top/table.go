package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/see/format"
)

// column is a column of a table. The first letter of its name is the key that sorts by it.
type column struct {
	name string
	// number columns are aligned to the right, and sorted with the largest number first.
	number bool
	// grows columns are shortened if the screen is narrow, the widest one first.
	grows bool
	// wide columns are left out on screens narrower than wideScreen.
	wide bool
}

// wideScreen is the smallest width at which all columns are shown.
const wideScreen = 100

// cell is a text and the number by which it is sorted, 0 for texts.
type cell struct {
	text  string
	order float64
}

type row struct {
	id    string // identifies the row on its screen across refreshes
	cells []cell
	link  string // the page that Enter opens, or ""
	bad   bool   // the row has a problem
}

// table is the content of a screen.
type table struct {
	name    string
	columns []column
	rows    []row
	empty   string // the text in the place of the rows
}

func text(s string) cell { return cell{text: view.Printable(s)} }

// count returns a cell with a number. It is empty for 0.
func count[N int | int32 | uint64](n N) cell {
	if n == 0 {
		return cell{}
	}
	return number(n)
}

// number returns a cell with a number, 0 included.
func number[N int | int32 | uint64](n N) cell { return cell{format.Int(n), float64(n)} }

// rate returns a cell with a number of events a second. It is empty for 0.
func rate(perSecond float64) cell {
	if perSecond <= 0 {
		return cell{}
	}
	return cell{format.Number(perSecond), perSecond}
}

// duration returns a cell with a duration. It is empty for 0.
func duration(d time.Duration) cell {
	if d <= 0 {
		return cell{}
	}
	return cell{format.Short(d), d.Seconds()}
}

// since returns a cell with the time from then to now. It is empty for the zero time.
func since(then, now time.Time) cell {
	if then.IsZero() {
		return cell{}
	}
	age := max(0, now.Sub(then))
	return cell{format.Short(age), age.Seconds()}
}

// sorting is the order of the rows of a table. With the zero value, rows with problems come first.
type sorting struct {
	by       byte // the first letter of a column
	reversed bool
}

// sorted returns the rows in an order. Equal rows keep their order.
func (t table) sorted(s sorting) []row {
	at := slices.IndexFunc(t.columns, func(c column) bool { return c.name[0] == s.by })
	compare := func(a, b row) int {
		x, y := a.cells[at], b.cells[at]
		order := strings.Compare(x.text, y.text)
		if t.columns[at].number {
			order = cmp.Compare(y.order, x.order)
		}
		if s.reversed {
			return -order
		}
		return order
	}
	if at < 0 {
		rank := map[bool]int{true: 0, false: 1}
		compare = func(a, b row) int { return cmp.Compare(rank[a.bad], rank[b.bad]) }
	}
	return slices.SortedStableFunc(slices.Values(t.rows), compare)
}

// matching returns the rows with a cell that contains a text. Upper and lower case are equal.
func matching(rows []row, filter string) []row {
	filter = strings.ToLower(filter)
	return slices.DeleteFunc(rows, func(r row) bool {
		return !slices.ContainsFunc(r.cells, func(c cell) bool {
			return strings.Contains(strings.ToLower(c.text), filter)
		})
	})
}

// gap is the space between two columns.
const gap = "  "

// widths returns the width of each column of some rows on a screen, 0 for omitted columns. A screen
// of width 0 is unlimited.
func (t table) widths(rows []row, width int) []int {
	widths, total := make([]int, len(t.columns)), -len(gap)
	for i, c := range t.columns {
		if c.wide && width > 0 && width < wideScreen {
			continue
		}
		widths[i] = len(c.name)
		for _, r := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(r.cells[i].text))
		}
		total += widths[i] + len(gap)
	}
	for over := total - width; width > 0 && over > 0; over-- {
		widest := -1
		for i, c := range t.columns {
			if c.grows && widths[i] > len(c.name) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

func (t table) heading(widths []int) string {
	var cells []cell
	for _, c := range t.columns {
		cells = append(cells, cell{text: c.name})
	}
	return t.line(cells, widths)
}

// line returns cells as a line, without trailing spaces.
func (t table) line(cells []cell, widths []int) string {
	var parts []string
	for i, c := range cells {
		if widths[i] == 0 {
			continue
		}
		shown := ansi.Truncate(c.text, widths[i], "…")
		space := strings.Repeat(" ", widths[i]-ansi.StringWidth(shown))
		if t.columns[i].number {
			parts = append(parts, space+shown)
		} else {
			parts = append(parts, shown+space)
		}
	}
	return strings.TrimRight(strings.Join(parts, gap), " ")
}
