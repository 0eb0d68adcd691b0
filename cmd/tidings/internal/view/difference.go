package view

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
)

// difference is a difference between two states in one field, or in several similar fields.
type difference struct {
	path     string
	old, now string
}

func (d difference) length() int {
	return ansi.StringWidth(d.path + " " + d.old + arrow + d.now)
}

// minPathWidth is the number of characters of a path that are shown on the narrowest screen.
const minPathWidth = 8

// within returns the difference in at most width characters. It shortens the path at its beginning,
// so that the values stay whole. If that is not enough, it shortens the values.
func (d difference) within(width int) difference {
	path, over := ansi.StringWidth(d.path), d.length()-width
	if over <= 0 {
		return d
	}
	if cut := min(over+1, path-minPathWidth); cut > 1 {
		d.path = ansi.TruncateLeft(d.path, cut, "…")
	}
	if d.length() <= width {
		return d
	}
	room := width - ansi.StringWidth(d.path+" "+arrow)
	old, now := ansi.StringWidth(d.old), ansi.StringWidth(d.now)
	d.old = shortened(d.old, max(1, room/2, room-now))
	d.now = shortened(d.now, max(1, room/2, room-old))
	return d
}

// The order of differences in a line: the most informative first.
const (
	rankSpec = iota
	rankStatus
	rankWhole // objects and lists of the status that were added or removed
	rankCondition
	rankReason // reason and message of a condition
	rankMetadata
	rankTime
	rankNoise // every write changes them
)

// lastApplied is the annotation in which kubectl keeps a copy of the applied configuration.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// timeFields are the fields with the time of an event.
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

// differencesOf returns the differences of two states, the most informative first. It returns noise
// only if there are no other differences, and never the version or the managed fields.
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
		line, old, now, ok := differingLines(change.Old, change.New)
		switch {
		case ok:
			path = fmt.Sprintf("%s:%d", path, line)
		case change.Kind == fielddiff.Added:
			old, now = absent, value(change.New)
		case change.Kind == fielddiff.Removed:
			old, now = value(change.Old), absent
		default:
			old, now = value(change.Old), value(change.New)
		}
		old, now = brief(old, now)
		differences = append(differences, difference{path, old, now})
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
		path := commonFields(run)
		if path == "" {
			path = commonElements(run)
		}
		if path != "" && same > 1 {
			run = []difference{{path, first.old, first.now}}
		}
		result, differences = append(result, run...), differences[same:]
	}
	return result
}

// maxJoined is the largest number of fields in one path.
const maxJoined = 4

// commonFields returns one path for several fields of one parent, "" for fields without one.
func commonFields(run []difference) string {
	var fields []string
	parent := ""
	for i, d := range run {
		dot := strings.LastIndexByte(d.path, '.')
		if dot < 0 || strings.ContainsAny(d.path[dot:], `"]`) || i > 0 && d.path[:dot] != parent {
			return ""
		}
		parent, fields = d.path[:dot], append(fields, d.path[dot+1:])
	}
	if len(fields) > maxJoined {
		fields = append(fields[:maxJoined-1], fmt.Sprintf("+%d", len(fields)-maxJoined+1))
	}
	return parent + ".{" + strings.Join(fields, ",") + "}"
}

// element matches the path of a field of an element of a list. Keys of maps are quoted.
var element = regexp.MustCompile(`^([^\[]*\[)[^"\]][^\]]*(\].*)$`)

// commonElements returns one path for the same field of several elements of a list, "" for other
// fields.
func commonElements(run []difference) string {
	common := ""
	for i, d := range run {
		path := element.ReplaceAllString(d.path, "$1*$2")
		if path == d.path || i > 0 && path != common {
			return ""
		}
		common = path
	}
	return common
}

// isWritten reports whether every write changes a field.
func isWritten(change fielddiff.Change) bool {
	return change.Path == "metadata.resourceVersion" ||
		strings.HasPrefix(change.Path, "metadata.managedFields")
}

func lastField(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
