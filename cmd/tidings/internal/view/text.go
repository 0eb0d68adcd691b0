package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Count writes a number with its thousands set apart: 12,345.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Counted writes a number with what is counted: 1 object, 12 objects.
func Counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Bytes writes a size: 24 MB.
func Bytes(n uint64) string {
	const unit = 1 << 10
	switch {
	case n < unit:
		return fmt.Sprintf("%d B", n)
	case n < unit*unit:
		return fmt.Sprintf("%d kB", n/unit)
	case n < unit*unit*unit:
		return fmt.Sprintf("%d MB", n/unit/unit)
	default:
		return fmt.Sprintf("%.1f GB", float64(n)/unit/unit/unit)
	}
}

// Short writes a short time with two or three digits: 840µs, 1.2ms, 3.4s.
func Short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// Age writes how long ago something was, as kubectl does: 45s, 12m, 3h, 4d.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// shortened returns at most width characters of text, the last one being … if some
// are missing.
func shortened(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:width-1]) + "…"
}

// shortenedInside returns at most width characters of text, with … in the middle if
// some are missing: both ends of a name tell something.
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
	if missing := width - utf8.RuneCountInString(text); missing > 0 {
		return text + strings.Repeat(" ", missing)
	}
	return text
}

// clipped cuts a coloured line to width characters, which escape sequences are not.
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
