package view

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Count formats a number with separators: 12,345.
func Count(n int64) string {
	digits := strconv.FormatInt(max(n, -n), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if n < 0 {
		return "-" + digits
	}
	return digits
}

// Counted formats a number with its noun: 1 object, 12 objects.
func Counted[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(int64(n)) + " " + many
}

// Bytes formats a size: 24 MB.
func Bytes(n uint64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d kB", n>>10)
	case n < 1<<30:
		return fmt.Sprintf("%d MB", n>>20)
	default:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
}

// Short formats a time with two or three digits: 840µs, 1.2ms, 3.4s.
func Short(d time.Duration) string {
	precision := time.Second
	for _, step := range []struct{ below, precision time.Duration }{
		{time.Minute, 100 * time.Millisecond}, {time.Second, time.Millisecond},
		{10 * time.Millisecond, 100 * time.Microsecond}, {time.Millisecond, 10 * time.Microsecond},
	} {
		if d < step.below {
			precision = step.precision
		}
	}
	return max(0, d).Round(precision).String()
}

// shortened returns at most width characters of text, with … at the end if some are missing; 0
// means any number.
func shortened(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Truncate(text, width, "…")
}

// shortenedInside returns at most width characters of text, with … in the middle if some are
// missing: both ends of a name are informative.
func shortenedInside(text string, width int) string {
	if n := ansi.StringWidth(text); n > width && width >= 3 {
		return ansi.Truncate(text, width/2, "") + ansi.TruncateLeft(text, n-(width-width/2-1), "…")
	}
	return text
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// Columns returns rows as a table whose columns are two spaces apart.
func Columns(rows [][]string) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Printable(cell)
		}
		fmt.Fprintln(table, strings.Join(row, "\t")) //nolint:errcheck // memory returns no error
	}
	table.Flush() //nolint:errcheck // memory returns no error
	return text.String()
}
