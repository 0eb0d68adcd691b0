package debug

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/see/format"
)

// functions are the functions of the pages' templates.
var functions = template.FuncMap{
	"ago": ago, "bytes": format.Bytes, "spark": sparkline, "number": format.Number, "int": format.Int,
	"informer": informerLink, "controller": controllerLink, "group": groupLink, "key": keyLink,
	"changes":  changesLink,
	"followed": isFollowed, "join": strings.Join, "short": format.Short, "counted": format.Counted,
	"percent": format.Percent, "coverText": coverText, "uncovered": isUncovered, "causes": causesOf,
	"clock": format.Clock, "millis": millis, "utc": utc, "in": until, "breaks": breaks,
	"some":  format.Some,
	"strip": strip, "more": moreReasons, "lower": strings.ToLower, "state": state,
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

// millis returns a time of day in UTC, and utc a time with its date for machines.
func millis(t time.Time) string { return t.UTC().Format("15:04:05.000") }

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func now() time.Time { return time.Now() }

// ago returns the time since t; "" if t is zero, and 0 if t is in the future, as by the clock of a
// server.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return format.Short(max(0, time.Since(t)))
}

// until returns the time until t; "" if t is zero, and "now" if it has passed.
func until(t time.Time) string {
	switch left := time.Until(t); {
	case t.IsZero():
		return ""
	case left <= 0:
		return "now"
	default:
		return "in " + format.Short(left)
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

func informerLink(name string) string   { return "informer?name=" + url.QueryEscape(name) }
func controllerLink(name string) string { return "controller?name=" + url.QueryEscape(name) }
func groupLink(lease string) string     { return "group?name=" + url.QueryEscape(lease) }
func changesLink(name string) string    { return "changes?informer=" + url.QueryEscape(name) }
func keyLink(key string) string         { return "key?key=" + url.QueryEscape(key) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
