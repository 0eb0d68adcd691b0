package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/format"
)

type line struct {
	text    string
	link    string // the page that Enter opens, or ""
	opens   bool   // the line is the first one with the link
	heading bool
	bad     bool
}

// sheet collects the lines of details.
type sheet struct {
	now   time.Time
	width int
	lines []line
}

// detailsOf returns the lines of a page on a screen of the given width.
func detailsOf(page any, now time.Time, width int) []line {
	s := &sheet{now: now, width: width}
	switch page := page.(type) {
	case *debug.InformerFigures:
		s.informer(page)
	case *debug.ControllerFigures:
		s.controller(page)
	case *debug.GroupFigures:
		s.group(page)
	case *debug.KeyFigures:
		s.key(page)
	}
	return s.lines
}

func (s *sheet) heading(format string, args ...any) {
	if len(s.lines) > 0 {
		s.lines = append(s.lines, line{})
	}
	text := view.Printable(fmt.Sprintf(format, args...))
	s.lines = append(s.lines, line{text: text, heading: true})
}

// wrap adds an indented text, in as many lines as it needs.
func (s *sheet) wrap(l line, indent int) {
	space := strings.Repeat(" ", indent)
	for i, part := range wrapped(view.Printable(l.text), s.width-indent-2) {
		if i > 0 {
			part = "  " + part
		}
		s.lines = append(s.lines, line{
			text: space + part, link: l.link, opens: l.opens && i == 0, bad: l.bad,
		})
	}
}

func (s *sheet) add(format string, args ...any) {
	s.wrap(line{text: fmt.Sprintf(format, args...)}, 2)
}

func (s *sheet) link(page, format string, args ...any) {
	s.wrap(line{text: fmt.Sprintf(format, args...), link: page, opens: true}, 2)
}

// ago returns the time since then as text, after a separator; "" for the zero time.
func (s *sheet) ago(separator string, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return separator + s.since(then) + " ago"
}

func (s *sheet) since(then time.Time) string { return since(then, s.now).text }

func (s *sheet) problems(all []debug.Problem) {
	for _, p := range all {
		text := p.Of + " " + p.What
		if !p.Since.IsZero() {
			text += ", for " + s.since(p.Since)
		}
		s.wrap(line{text: text, bad: true}, 2)
	}
}

// graphs adds the graphs of a page that have a value other than 0.
func (s *sheet) graphs(h *debug.History) {
	if h == nil {
		return
	}
	isFirst := true
	for _, g := range h.Graphs {
		if !g.HasValues() {
			continue
		}
		if isFirst {
			s.heading("Since %s", format.Clock(h.From))
			isFirst = false
		}
		bars := g.Bars(max(10, min(s.width-32, 60)/2))
		s.add("%-22s %s %s", g.Title, bars, g.Summary())
	}
}

func (s *sheet) informer(f *debug.InformerFigures) {
	h := f.Health
	s.heading("Informer %s", f.Name)
	s.problems(f.Problems)
	s.add("%s for %s; %s; version %s; last event or bookmark%s", h.State, s.since(begun(h.Watch)),
		format.Counted(h.Objects, "object", "objects"), h.Version, s.ago(" ", h.LastEvent))
	if m := f.Memory; m != nil {
		s.add("memory: about %s: %s of objects, %s of keys, %s of indexes", format.Bytes(m.Bytes),
			format.Bytes(m.ObjectBytes), format.Bytes(m.KeyBytes), format.Bytes(m.IndexBytes))
		s.add("an object takes about %s; the objects share %s", format.Bytes(m.OwnBytes),
			format.Bytes(m.SharedBytes))
	}
	if h.Stale+h.Dropped+h.TransformErrors+h.IndexErrors > 0 {
		s.add("%d older than the cache, %d dropped, %d failed transforms, %d failed index functions",
			h.Stale, h.Dropped, h.TransformErrors, h.IndexErrors)
	}
	if h.Undecodable > 0 {
		s.add("%d objects cannot be decoded", h.Undecodable)
	}
	for _, err := range []error{h.LastDropped, h.LastTransformError, h.LastIndexError} {
		if err != nil {
			s.add("%v", err)
		}
	}
	s.graphs(f.History)
	s.handlers(f.Handlers)
	s.heading("Lists and watches")
	if len(h.Namespaces) == 0 {
		s.watch("all namespaces", h.Watch)
	}
	for _, namespace := range slices.Sorted(maps.Keys(h.Namespaces)) {
		s.watch(namespace, h.Namespaces[namespace])
	}
	if len(f.Indexes) > 0 {
		s.heading("Indexes")
	}
	for _, index := range f.Indexes {
		s.add("%s: %s, about %s", index.Name, format.Counted(index.Entries, "entry", "entries"),
			format.Bytes(index.Bytes))
	}
	if f.Found > 0 {
		s.heading("Keys: the first %d of %s", len(f.Keys), format.Int(f.Found))
	}
	for _, key := range f.Keys {
		s.link(keyLink(key), "%s", key)
	}
}

func (s *sheet) handlers(all []debug.HandlerRow) {
	s.heading("Handlers")
	if len(all) == 0 {
		s.add("There are none.")
	}
	for _, h := range all {
		text := fmt.Sprintf("%s: %s; %s waiting; behind by %v; %s received", h.Name, h.State,
			format.Int(h.Pending), h.Behind.Duration, format.Int(h.Handler.Delivered))
		if h.Folded+h.LeftOut+h.Panics > 0 {
			text += fmt.Sprintf("; %d folded, %d left out, %d panics", h.Folded, h.LeftOut, h.Panics)
		}
		if h.Running == "" {
			s.add("%s", text)
			continue
		}
		s.link(keyLink(h.Running), "%s; called with %s for %s", text, h.Running, s.since(h.RunningSince))
	}
}

func (s *sheet) watch(namespace string, w health.Watch) {
	text := fmt.Sprintf("%s: %s for %s; %s, %s", namespace, w.State, s.since(begun(w)),
		format.Counted(w.Lists, "list", "lists"), format.Counted(w.Watches, "watch", "watches"))
	if w.Bytes > 0 {
		text += ", " + format.Bytes(w.Bytes) + " received"
	}
	s.add("%s", text)
	if w.Failures > 0 {
		s.add("  %s in a row", format.Counted(w.Failures, "failure", "failures"))
	}
	if w.LastError != nil {
		s.add("  last error%s: %v", s.ago(" ", w.LastErrorAt), w.LastError)
	}
	var states []string
	for _, at := range slices.Backward(w.History) {
		states = append(states, string(at.State)+s.ago(" ", at.At))
	}
	if len(states) > 0 {
		s.add("  %s", strings.Join(states, ", "))
	}
}

func (s *sheet) key(f *debug.KeyFigures) {
	s.heading("Key %s", f.Key)
	s.problems(f.Problems)
	for _, w := range f.Waits {
		s.wait("controller "+w.Controller, controllerLink(w.Controller), w.Wait)
	}
	for _, c := range f.Controllers {
		s.link(controllerLink(c.Name), "controller %s: %s%s", c.Name, c.What, s.ago(", ", c.Since))
	}
	for _, h := range f.Handlers {
		s.link(informerLink(h.Informer), "handler %s of %s is called with it for %s", h.Name, h.Informer,
			s.since(h.Since))
	}
	if len(f.Cached) == 0 {
		s.add("No informer caches it.")
	}
	if len(f.Unknown) > 0 {
		s.add("Not known for %s.", strings.Join(f.Unknown, ", "))
	}
	for _, c := range f.Cached {
		s.cached(c)
	}
	s.heading("Last calls of controllers")
	if len(f.Calls) == 0 {
		s.add("There are none.")
	}
	for _, c := range f.Calls {
		s.call(c.Controller+": ", c.Call)
	}
	for _, c := range f.Cached {
		if c.Body == "" {
			continue
		}
		s.heading("The object in %s", c.Informer)
		for body := range strings.Lines(c.Body) {
			s.lines = append(s.lines, line{text: "  " + view.Printable(strings.TrimRight(body, "\n"))})
		}
	}
}

// cached adds an object and the managers of its fields.
func (s *sheet) cached(c debug.Cached) {
	s.heading("Cached by %s", c.Informer)
	text := fmt.Sprintf("%s; version %s", c.Type, c.Version)
	if c.Generation > 0 {
		text += fmt.Sprintf("; generation %d", c.Generation)
	}
	created := "; creation not declared"
	if !c.Created.IsZero() {
		created = "; created" + s.ago(" ", c.Created)
	}
	s.link(informerLink(c.Informer), "%s%s", text, created)
	if len(c.Declares) > 0 {
		s.add("view of %s", strings.Join(c.Declares, ", "))
	}
	if !c.Deleted.IsZero() {
		s.add("deletion began%s; finalizers: %s", s.ago(" ", c.Deleted), strings.Join(c.Finalizers, ", "))
	}
	for _, o := range c.Owners {
		s.link(keyLink(o.Key), "owned by %s %s", o.Kind, o.Key)
	}
	switch {
	case c.Secret:
		s.add("It is a Secret, of which no more is shown.")
		return
	case len(c.Managers) == 0:
		s.add("It has no managed fields: who wrote its fields is not known.")
	}
	for _, m := range c.Managers {
		of := m.Operation
		if m.Subresource != "" {
			of += " of " + m.Subresource
		}
		s.add("%s wrote last%s (%s):", m.Name, s.ago(" ", m.At), of)
		s.wrap(line{text: strings.Join(m.Fields, "  ")}, 4)
	}
}
