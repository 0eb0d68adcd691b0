package format

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Int returns an integer with its thousands separated: 12,345.
func Int(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Some returns an integer, and "" for 0.
func Some(n any) string {
	if text := Int(n); text != "0" {
		return text
	}
	return ""
}

// Counted returns an integer with a noun or a clause, in singular or plural: 1 object, 12 objects.
func Counted(n any, one, several string) string {
	if text := Int(n); text != "1" {
		return text + " " + several
	}
	return "1 " + one
}

// Number returns a number with one digit after the point, and more for small ones.
func Number(n float64) string {
	switch {
	case n == float64(int64(n)):
		return Int(int64(n))
	case n < 1:
		return strconv.FormatFloat(n, 'g', 2, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// Percent returns a share of 1. It rounds down, so that 100 % is all.
func Percent(share float64) string { return fmt.Sprintf("%d %%", int(share*100)) }

// Bytes returns a size in binary units: 12.1 KiB.
func Bytes(n any) string {
	v := reflect.ValueOf(n)
	size := 0.0
	if v.CanInt() {
		size = float64(v.Int())
	} else {
		size = float64(v.Uint())
	}
	if size < 1024 {
		return fmt.Sprintf("%.0f B", size)
	}
	units := [...]string{"KiB", "MiB", "GiB", "TiB"}
	unit := 0
	for size /= 1024; size >= 1024 && unit < len(units)-1; unit++ {
		size /= 1024
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// Short returns a duration with two or three digits, or two units: 840µs, 1.2ms, 3.4s, 2h5m. It
// returns 0s for a negative one.
func Short(d time.Duration) string {
	for _, step := range []struct{ below, precision time.Duration }{
		{time.Millisecond, 10 * time.Microsecond}, {10 * time.Millisecond, 100 * time.Microsecond},
		{time.Second, time.Millisecond}, {time.Minute, 100 * time.Millisecond}, {time.Hour, time.Second},
	} {
		if d < step.below {
			return max(0, d).Round(step.precision).String()
		}
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// Clock returns a time of day in UTC: 12:25:40 UTC.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }
