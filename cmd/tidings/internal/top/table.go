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
	// grows columns have names. They are shortened if the others do not fit beside them.
	grows bool
	// wraps is the last column if it has sentences: it takes the width that the others leave, or
	// lines of its own.
	wraps bool
	// rank is the order in which columns are left out on narrow screens: the largest one first, and 0
	// never.
	rank int
}

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

// gap is the space between two columns, and leastSentence the least width of sentences in one.
const (
	gap           = "  "
	leastSentence = 36
)

// widths returns the width of each column of some rows on a screen, 0 for omitted columns, and the
// names of columns that are left out. A screen of width 0 is unlimited.
func (t table) widths(rows []row, width int) (widths []int, leftOut []string) {
	widths, total := make([]int, len(t.columns)), -len(gap)
	for i, c := range t.columns {
		widths[i] = len(c.name)
		for _, r := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(r.cells[i].text))
		}
		if width > 0 && c.wraps {
			widths[i] = 0
			continue
		}
		total += widths[i] + len(gap)
	}
	if width == 0 {
		return widths, nil
	}
	over := func() int { // names keep up to a third of the screen
		over := total - width
		for i, c := range t.columns {
			if c.grows {
				over -= max(0, widths[i]-max(width/3, len(c.name)))
			}
		}
		return over
	}
	for over() > 0 {
		least := 0
		for i, c := range t.columns {
			if c.rank > t.columns[least].rank && widths[i] > 0 {
				least = i
			}
		}
		if t.columns[least].rank == 0 {
			break
		}
		total -= widths[least] + len(gap)
		leftOut, widths[least] = append(leftOut, t.columns[least].name), 0
	}
	for ; total > width; total-- {
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
	if last := len(widths) - 1; t.columns[last].wraps && width-total-len(gap) >= leastSentence {
		widths[last] = width - total - len(gap)
	}
	return widths, leftOut
}

func (t table) heading(widths []int) string {
	var cells []cell
	for _, c := range t.columns {
		cells = append(cells, cell{text: c.name})
	}
	return t.lines(cells, widths, 0)[0]
}

// lines returns cells as lines, without trailing spaces. Only a sentence takes more than one.
func (t table) lines(cells []cell, widths []int, width int) []string {
	var parts, more []string
	start := 0 // of the present column
	for i, c := range cells {
		switch {
		case t.columns[i].wraps && widths[i] > 0:
			more = wrapped(c.text, widths[i])
			parts, more = append(parts, more[0]), more[1:]
			continue
		case t.columns[i].wraps && width > 0 && c.text != "":
			start = sentenceIndent
			more = wrapped(c.text, width-start)
		}
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
		start += widths[i] + len(gap)
	}
	lines := []string{strings.TrimRight(strings.Join(parts, gap), " ")}
	for _, part := range more {
		lines = append(lines, strings.Repeat(" ", start)+part)
	}
	return lines
}

// sentenceIndent is the indent of a sentence below its row.
const sentenceIndent = 4

// wrapped returns a text as lines of at most a width.
func wrapped(text string, width int) []string {
	lines := strings.Split(ansi.Wrap(text, max(width, 10), ""), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return lines
}
