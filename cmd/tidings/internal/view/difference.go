package view

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/fielddiff"
)

// difference is one field that differs between two states.
type difference struct {
	path     string
	short    string // the path for a narrow screen; "" for the same
	old, now string
}

// within returns the difference for a screen that has so many characters for it: with
// a shorter path where it needs one, so that the values can be seen.
func (d difference) within(width int) difference {
	if width <= 0 || d.length() <= width {
		return d
	}
	if d.short != "" {
		d.path = d.short
	}
	if excess := d.length() - width; excess > 0 {
		path := []rune(d.path)
		keep := max(minPathWidth, len(path)-excess-1)
		if keep < len(path)-1 {
			d.path = "…" + string(path[len(path)-keep:])
		}
	}
	return d
}

// minPathWidth is how much of a path is shown on the narrowest screen.
const minPathWidth = 12

func (d difference) length() int {
	return utf8.RuneCountInString(d.path) + len(" ") + utf8.RuneCountInString(arrow) + utf8.RuneCountInString(d.old) + utf8.RuneCountInString(d.now)
}

// What readers look for first; conditions, times and the server's own book-keeping
// come last.
const (
	rankSpec = iota
	rankStatus
	rankWhole
	rankCondition
	rankMetadata
	rankTime
	rankNoise
)

// differencesOf returns the fields that differ, those that tell most first. What
// every write changes is shown only where nothing else changed; the version and the
// managed fields never are.
func differencesOf(old, now tidings.Object) []difference {
	type ranked struct {
		difference
		rank int
	}
	var found []ranked
	for _, change := range fielddiff.Diff(old, now) {
		path := change.Path
		if path == "metadata.resourceVersion" || strings.HasPrefix(path, "metadata.managedFields") {
			continue
		}
		d := difference{path: Printable(named.ReplaceAllString(path, "[$1]")), old: absent, now: absent}
		if p, ok := passageOf(change.Old, change.New); ok {
			d.path += fmt.Sprintf(":%d", p.line)
			d.old, d.now = p.values()
		} else {
			if change.Kind != fielddiff.Added {
				d.old = value(change.Old)
			}
			if change.Kind != fielddiff.Removed {
				d.now = value(change.New)
			}
		}
		d.old, d.now = brief(d.old, d.now)
		found = append(found, ranked{d, rankOf(change)})
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	var differences []difference
	for i, r := range found {
		if i > 0 && r.rank == rankNoise {
			break
		}
		differences = append(differences, r.difference)
	}
	return joined(differences)
}

// maxJoined is how many fields one path names.
const maxJoined = 4

// named are elements of lists that are found by what everybody calls them.
var named = regexp.MustCompile(`\[(?:name|type)=([^\]]*)\]`)

// joined makes one difference of those that follow each other with the same values
// under paths that differ in one place: status.{readyReplicas,replicas} for fields,
// status.conditions[*].lastHeartbeatTime for elements of a list.
func joined(differences []difference) []difference {
	var result []difference
	for i := 0; i < len(differences); {
		first := differences[i]
		same := 1
		for i+same < len(differences) && differences[i+same].old == first.old && differences[i+same].now == first.now {
			same++
		}
		run := differences[i : i+same]
		i += same
		if path, short, ok := commonFields(run); ok {
			first.path, first.short, run = path, short, run[:1]
		} else if path, ok := commonElements(run); ok {
			first.path, run = path, run[:1]
		}
		result = append(append(result, first), run[1:]...)
	}
	return result
}

// commonFields returns one path for several fields of one parent, and a shorter one.
func commonFields(run []difference) (path, short string, ok bool) {
	var fields []string
	parent := ""
	for i, d := range run {
		dot := strings.LastIndexByte(d.path, '.')
		if dot < 0 || strings.ContainsAny(d.path[dot:], `"]`) || i > 0 && d.path[:dot] != parent {
			return "", "", false
		}
		parent = d.path[:dot]
		fields = append(fields, d.path[dot+1:])
	}
	short = fmt.Sprintf("%s.{%s,+%d}", parent, fields[0], len(fields)-1)
	if len(fields) > maxJoined {
		fields = append(fields[:maxJoined-1], fmt.Sprintf("+%d", len(fields)-maxJoined+1))
	}
	return parent + ".{" + strings.Join(fields, ",") + "}", short, len(run) > 1
}

// commonElements returns one path for the same field of several elements of a list.
// The keys of maps, which stand in quotes, are not elements.
func commonElements(run []difference) (string, bool) {
	list, field := "", ""
	for i, d := range run {
		before, rest, opened := strings.Cut(d.path, "[")
		_, after, closed := strings.Cut(rest, "]")
		if !opened || !closed || strings.HasPrefix(rest, `"`) || i > 0 && (before != list || after != field) {
			return "", false
		}
		list, field = before, after
	}
	return list + "[*]" + field, len(run) > 1
}

// lastApplied is the annotation in which kubectl keeps once more what was applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// timeFields are the fields that say when something happened.
var timeFields = []string{"lastHeartbeatTime", "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "renewTime", "finishedAt", "startedAt"}

func rankOf(change fielddiff.Change) int {
	path := change.Path
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case path == "metadata.generation", last == "observedGeneration", strings.Contains(path, lastApplied):
		return rankNoise
	case slices.Contains(timeFields, last):
		return rankTime
	case strings.HasPrefix(path, "metadata."):
		return rankMetadata
	case strings.HasPrefix(path, "status.conditions"):
		return rankCondition
	case strings.HasPrefix(path, "status"):
		if isWhole(change.Old) || isWhole(change.New) {
			return rankWhole
		}
		return rankStatus
	default:
		return rankSpec
	}
}

// isWhole reports whether a value is an object or a list, which says little in a
// line.
func isWhole(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}
