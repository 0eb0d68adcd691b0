package debug

import "strings"

// Level says how urgent a problem is.
type Level string

// The levels, the most urgent first.
const (
	// LevelError is a problem that needs somebody.
	LevelError Level = "error"
	// LevelWarning is a problem that may end by itself, or has ended and left something.
	LevelWarning Level = "warning"
	// LevelWaiting is a wait with a known cure: a list that runs, a turn that comes, a resource that
	// is installed later.
	LevelWaiting Level = "waiting"
)

// rank orders levels, the most urgent first.
func (l Level) rank() int {
	switch l {
	case LevelError:
		return 0
	case LevelWarning:
		return 1
	}
	return 2
}

// levelIf returns the first level if a condition holds, and otherwise the second one.
func levelIf(holds bool, level, otherwise Level) Level {
	if holds {
		return level
	}
	return otherwise
}

// Word returns the level as a word of a page.
func (l Level) Word() string { return strings.ToUpper(string(l[:1])) + string(l[1:]) }
