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

// difference is one field, or several similar ones, with other values in two states.
type difference struct {
	path     string
	short    string // the path for a narrow screen, "" for the same
	old, now string
}

func (d difference) length() int {
	return utf8.RuneCountInString(d.path + " " + d.old + arrow + d.now)
}

const (
	// minPathWidth is how much of a path is shown on the narrowest screen.
	minPathWidth = 8
	// pathParts are the characters that a shortened path may begin after.
	pathParts = "./["
)

// within returns the difference in at most width characters: with a shorter path, so that the
// values stay whole, and if that is not enough, with shorter values.
func (d difference) within(width int) difference {
	if d.length() > width && d.short != "" {
		d.path = d.short
	}
	if d.length() <= width {
		return d
	}
	values := utf8.RuneCountInString(" " + d.old + arrow + d.now)
	d.path = shortPath(d.path, max(minPathWidth, width-values))
	if d.length() <= width {
		return d
	}
	room := width - utf8.RuneCountInString(d.path+" "+arrow)
	old, now := utf8.RuneCountInString(d.old), utf8.RuneCountInString(d.now)
	half := max(1, room/2)
	switch {
	case old <= half:
		d.now = shortened(d.now, max(1, room-old))
	case now <= half:
		d.old = shortened(d.old, max(1, room-now))
	default:
		d.old, d.now = shortened(d.old, half), shortened(d.now, half)
	}
	return d
}

// shortPath returns the end of a path, after … and at the beginning of a part of it if one fits.
func shortPath(path string, width int) string {
	runes := []rune(path)
	if len(runes) <= width {
		return path
	}
	for i := len(runes) - width + 1; i < len(runes); i++ {
		if strings.ContainsRune(pathParts, runes[i-1]) {
			return "…" + string(runes[i:])
		}
	}
	return "…" + string(runes[len(runes)-width+1:])
}

// The order of differences in a line: the most informative first.
const (
	rankSpec = iota
	rankStatus
	rankWhole // objects and lists of the status that were added or removed
	rankCondition
	rankReason // why a condition has its status
	rankMetadata
	rankTime
	rankNoise // every write changes them
)

// lastApplied is the annotation in which kubectl keeps a copy of the applied configuration.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// timeFields are the fields that say when something happened.
var timeFields = []string{
	"lastHeartbeatTime", "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "renewTime",
	"finishedAt", "startedAt",
}

func rankOf(change fielddiff.Change) int {
	path := change.Path
	last := lastField(path)
	switch {
	case path == "metadata.generation", last == "observedGeneration",
		strings.Contains(path, lastApplied):
		return rankNoise
	case slices.Contains(timeFields, last):
		return rankTime
	case strings.HasPrefix(path, "metadata."):
		return rankMetadata
	case strings.HasPrefix(path, "status.conditions") && (last == "reason" || last == "message"):
		return rankReason
	case strings.HasPrefix(path, "status.conditions"):
		return rankCondition
	case strings.HasPrefix(path, "status"):
		for _, v := range []any{change.Old, change.New} {
			switch v.(type) {
			case []any, map[string]any:
				return rankWhole
			}
		}
		return rankStatus
	default:
		return rankSpec
	}
}

// identified matches the elements of lists that have a name or a type.
var identified = regexp.MustCompile(`\[(?:name|type)=([^\]]*)\]`)

// differencesOf returns the differences of two states, the most informative first. It returns
// noise only if there is nothing else, and neither the version nor the managed fields.
func differencesOf(old, now tidings.Object) []difference {
	changes := slices.DeleteFunc(fielddiff.Diff(old, now), isWritten)
	slices.SortStableFunc(changes,
		func(a, b fielddiff.Change) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	var differences []difference
	for i, change := range changes {
		if i > 0 && rankOf(change) == rankNoise {
			break
		}
		path := Printable(identified.ReplaceAllString(change.Path, "[$1]"))
		d := difference{path: path, old: absent, now: absent}
		if line, old, now, ok := differingLines(change.Old, change.New); ok {
			d.path, d.old, d.now = fmt.Sprintf("%s:%d", d.path, line), old, now
		} else {
			if change.Kind != fielddiff.Added {
				d.old = value(change.Old)
			}
			if change.Kind != fielddiff.Removed {
				d.now = value(change.New)
			}
		}
		d.old, d.now = brief(d.old, d.now)
		differences = append(differences, d)
	}
	return joined(differences)
}

// joined replaces consecutive differences with the same values by one, if their paths differ in
// one place: status.{readyReplicas,replicas} for fields of one parent,
// status.conditions[*].lastHeartbeatTime for a field of several elements of a list.
func joined(differences []difference) (result []difference) {
	for len(differences) > 0 {
		first, same := differences[0], 1
		for same < len(differences) && differences[same].old == first.old &&
			differences[same].now == first.now {
			same++
		}
		run := differences[:same]
		if path, short, ok := commonFields(run); ok {
			first.path, first.short, run = path, short, nil
		} else if path, ok := commonElements(run); ok {
			first.path, run = path, nil
		}
		if run == nil {
			run = []difference{first}
		}
		result, differences = append(result, run...), differences[same:]
	}
	return result
}

// maxJoined is how many fields one path names.
const maxJoined = 4

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

// commonElements returns one path for the same field of several elements of a list. Keys of maps,
// which are quoted, are not elements.
func commonElements(run []difference) (string, bool) {
	list, field := "", ""
	for i, d := range run {
		before, rest, opened := strings.Cut(d.path, "[")
		_, after, closed := strings.Cut(rest, "]")
		if !opened || !closed || strings.HasPrefix(rest, `"`) ||
			i > 0 && (before != list || after != field) {
			return "", false
		}
		list, field = before, after
	}
	return list + "[*]" + field, len(run) > 1
}
