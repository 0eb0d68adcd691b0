package debug

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/controller"
)

// functions are the functions of the pages' templates.
var functions = template.FuncMap{
	"ago": ago, "bytes": formatBytes, "spark": sparkline, "number": number, "int": formatInt,
	"informer": informerLink, "controller": controllerLink, "group": groupLink, "key": keyLink,
	"changes":  changesLink,
	"followed": isFollowed, "join": strings.Join, "short": short, "counted": counted,
	"percent": percent, "coverText": coverText, "uncovered": isUncovered, "causes": causesOf,
	"clock": clock, "millis": millis, "utc": utc, "in": until, "breaks": breaks, "some": some,
	"strip": strip, "more": moreReasons, "lower": strings.ToLower, "state": state,
}

// counted returns a number with a noun or a clause, in singular or plural.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return formatInt(n) + " " + several
}

// breakable are the signs after which a reader would break a long name. The
// sign of an escape, as in "&#34;", is none of them.
var breakable = strings.NewReplacer("&#", "&#", "/", "/<wbr>", ".", ".<wbr>", ":", ":<wbr>",
	"=", "=<wbr>", "@", "@<wbr>", ",", ",<wbr>", "_", "_<wbr>", "#", "#<wbr>")

// breaks returns a text with the places where a narrow screen may break it.
func breaks(text any) template.HTML {
	escaped := template.HTMLEscapeString(fmt.Sprint(text))
	return template.HTML(breakable.Replace(escaped)) //nolint:gosec // it is escaped
}

// clock returns a time of day, and utc a time with its date for machines.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }

func millis(t time.Time) string { return t.UTC().Format("15:04:05.000") }

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func now() time.Time { return time.Now() }

// ago returns the time since t; "" if t is zero, and 0 if t is in the future, as by the clock of a
// server.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return short(max(0, time.Since(t)))
}

// until returns the time until t; "" if t is zero, and "now" if it has passed.
func until(t time.Time) string {
	switch left := time.Until(t); {
	case t.IsZero():
		return ""
	case left <= 0:
		return "now"
	default:
		return "in " + short(left)
	}
}

// moreReasons returns the number of reasons of a call after the first one.
func moreReasons(c any) int {
	if of, ok := c.(KeyCall); ok {
		c = of.Call
	}
	call := c.(controller.Call)
	return max(0, len(call.Reasons)-1) + call.MoreReasons
}

// short returns a duration with two units at most.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// formatBytes returns a size, of any type of integers, in binary units.
func formatBytes(n any) string {
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

// formatInt returns a number with its thousands separated.
func formatInt(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// some returns a number, and "" for 0.
func some(n any) string {
	if text := formatInt(n); text != "0" {
		return text
	}
	return ""
}

func informerLink(name string) string   { return "informer?name=" + url.QueryEscape(name) }
func controllerLink(name string) string { return "controller?name=" + url.QueryEscape(name) }
func groupLink(lease string) string     { return "group?name=" + url.QueryEscape(lease) }
func changesLink(name string) string    { return "changes?informer=" + url.QueryEscape(name) }
func keyLink(key string) string         { return "key?key=" + url.QueryEscape(key) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
