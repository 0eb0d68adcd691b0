package logtable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Lines counts lines of log by their kind: level, text and keys. Use [New].
type Lines struct {
	subject string
	mu      sync.Mutex // guards kinds
	kinds   map[string]int
}

// New returns Lines of which each has a subject, as in "informer". That is a key which is not in
// the rows of the table. "" is no such key.
func New(subject string) *Lines {
	return &Lines{subject: subject, kinds: map[string]int{}}
}

// Logger returns a logger whose lines are counted, those of level Debug included.
func (l *Lines) Logger() *slog.Logger { return slog.New(&handler{of: l}) }

// Kinds returns the number of lines by kind. A kind is written as a row of the table: level, text
// and keys.
func (l *Lines) Kinds() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.kinds)
}

// Compare compares the kinds with the table below a heading of a page. Rows whose text is one of
// unforced may have no line. The error has the lines that have no row, and the rows without a line.
func (l *Lines) Compare(page, heading string, unforced ...string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		return fmt.Errorf("%s has no heading %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	kinds, rows := l.Kinds(), map[string]bool{}
	var errs []error
	for _, row := range rowPattern.FindAllStringSubmatch(section, -1) {
		rows[row[1]] = true
		if kinds[row[1]] == 0 && !slices.Contains(unforced, row[2]) {
			errs = append(errs, fmt.Errorf("not logged, but in %s: %s", page, row[1]))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if !rows[kind] {
			errs = append(errs, fmt.Errorf("logged, but not in %s: %s", page, kind))
		}
	}
	return errors.Join(errs...)
}

var rowPattern = regexp.MustCompile("(?m)^\\| ([A-Z]\\w+ \\| `(.*?)` \\| (?:`[^|]*`)?) ?\\|")

// handler counts the lines of a logger.
type handler struct {
	of   *Lines
	keys []string // of With
}

// Enabled leaves out what client-go logs below Debug with the logger of a context.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug
}

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	var keys []string
	hasSubject := h.of.subject == ""
	add := func(key string) {
		if key == h.of.subject {
			hasSubject = true
		} else if key != "unlogged" {
			keys = append(keys, "`"+key+"`")
		}
	}
	for _, key := range h.keys {
		add(key)
	}
	r.Attrs(func(a slog.Attr) bool {
		add(a.Key)
		return true
	})
	level := r.Level.String()
	kind := fmt.Sprintf("%s%s | `%s` | %s", level[:1], strings.ToLower(level[1:]), r.Message,
		strings.Join(keys, ", "))
	if !hasSubject {
		kind += " without the key " + h.of.subject
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.of.kinds[kind]++
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	keys := slices.Clone(h.keys)
	for _, a := range attrs {
		keys = append(keys, a.Key)
	}
	return &handler{keys: keys, of: h.of}
}

func (h *handler) WithGroup(string) slog.Handler { return h }
