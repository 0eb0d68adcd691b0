package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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

// shortened returns at most width characters of text, the last one being … if some are missing.
func shortened(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// shortenedInside returns at most width characters of text, with … in the middle if some are
// missing: both ends of a name are informative.
func shortenedInside(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width || width < 3 {
		return text
	}
	head := width / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-head-1):])
}

// padded fills text with spaces up to a width.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// clipped cuts a coloured line to width characters. Escape sequences have no width.
func clipped(line string, width int) string {
	if width <= 0 {
		return line
	}
	shown, inEscape, cut := 0, false, -1
	for i, r := range line {
		switch {
		case inEscape:
			inEscape = r != 'm'
		case r == '\x1b':
			inEscape = true
		default:
			if shown++; shown == width {
				cut = i
			} else if shown > width {
				ending := ""
				if strings.Contains(line, escReset) {
					ending = escReset
				}
				return line[:cut] + "…" + ending
			}
		}
	}
	return line
}
