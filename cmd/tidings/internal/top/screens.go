package top

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/format"
)

// figures are the figures of the first page, which the screens show.
type figures struct{ debug.Overview }

// The numbers of the screens.
const (
	problemsScreen = iota
	informersScreen
	handlersScreen
	controllersScreen
	leasesScreen
	groupsScreen
)

// screens returns the tables of all screens, in the order of their numbers.
func (f figures) screens() []table {
	return []table{
		f.problems(), f.informers(), f.handlers(), f.controllers(), f.leases(), f.groups(),
	}
}

// informerLink and the functions below return links to the pages of debug, relative to the first
// one.
func informerLink(name string) string   { return "informer?name=" + url.QueryEscape(name) }
func controllerLink(name string) string { return "controller?name=" + url.QueryEscape(name) }
func groupLink(lease string) string     { return "group?name=" + url.QueryEscape(lease) }
func keyLink(key string) string         { return "key?key=" + url.QueryEscape(key) }

func (f figures) problems() table {
	t := table{
		name: "problems", empty: "No problems.",
		columns: []column{
			{name: "SINCE", number: true}, {name: "OF", grows: true}, {name: "PROBLEM", wraps: true},
		},
	}
	for _, c := range f.causes() {
		first := c.Problems[0]
		of, what := first.Of, first.What
		if !c.IsOne() {
			of, what = c.Concerns(), c.What
		}
		t.rows = append(t.rows, row{
			id: of + " " + what, cells: []cell{since(c.Since, f.At), text(of), text(what)},
			link: strings.TrimPrefix(first.Link, "./"), bad: c.Level == debug.LevelError || c.Level == "",
		})
	}
	return t
}

// causes returns the causes of the problems. A program of before names none: each problem is one.
func (f figures) causes() []debug.Cause {
	if len(f.Causes) > 0 {
		return f.Causes
	}
	var all []debug.Cause
	for _, p := range f.Problems {
		all = append(all, debug.Cause{Since: p.Since, Level: p.Level, Problems: []debug.Problem{p}})
	}
	return all
}

// hasProblem reports whether one of the problems is of the subject of.
func (f figures) hasProblem(of string) bool {
	return slices.ContainsFunc(f.Problems, func(p debug.Problem) bool { return p.Of == of })
}

func (f figures) informers() table {
	t := table{
		name: "informers", empty: "No informers.",
		columns: []column{
			{name: "NAME", grows: true}, {name: "STATE"}, {name: "FOR", number: true, rank: 2},
			{name: "LAST EVENT", number: true, rank: 3}, {name: "OBJECTS", number: true, rank: 4},
			{name: "RATE/S", number: true, rank: 6}, {name: "WAITING", number: true, rank: 1},
			{name: "MEMORY", number: true, rank: 5},
		},
	}
	for _, i := range f.Informers {
		var memory cell
		if i.Memory != nil {
			memory = cell{format.Bytes(i.Memory.Bytes), float64(i.Memory.Bytes)}
		}
		t.rows = append(t.rows, row{
			cells: []cell{
				text(i.Name), text(string(i.Health.State)), since(begun(i.Health.Watch), f.At),
				since(i.Health.LastEvent, f.At), number(i.Health.Objects), rate(i.Rate),
				count(i.Pending), memory,
			},
			id: i.Name, link: informerLink(i.Name), bad: f.hasProblem(i.Name),
		})
	}
	return t
}

// begun returns the time of the first of the present failures, or else the beginning of the state. The
// failures before a watch that runs have ended, even if it has brought nothing yet.
func begun(w health.Watch) time.Time {
	if !w.FailingSince.IsZero() && w.State != health.StateWatching {
		return w.FailingSince
	}
	return w.Since
}

func (f figures) handlers() table {
	t := table{
		name: "handlers", empty: "No handlers.",
		columns: []column{
			{name: "NAME", grows: true}, {name: "INFORMER", grows: true}, {name: "STATE"},
			{name: "BEHIND", number: true}, {name: "WAITING", number: true, rank: 1},
			{name: "MEAN", number: true, rank: 4}, {name: "RATE/S", number: true, rank: 5},
			{name: "CALL", grows: true, rank: 2}, {name: "FOR", number: true, rank: 3},
		},
	}
	for _, i := range f.Informers {
		for _, h := range i.Handlers {
			t.rows = append(t.rows, row{
				cells: []cell{
					text(h.Name), text(i.Name), text(string(h.State)), duration(h.Behind.Duration),
					count(h.Pending), duration(h.Calls.Mean()), rate(h.Rate), text(h.Running),
					since(h.RunningSince, f.At),
				},
				id: h.Name + " of " + i.Name, link: informerLink(i.Name),
				bad: f.hasProblem("handler " + h.Name + " of " + i.Name),
			})
		}
	}
	return t
}

func (f figures) controllers() table {
	t := table{
		name: "controllers", empty: "No controllers.",
		columns: []column{
			{name: "NAME", grows: true}, {name: "STATE"}, {name: "QUEUED", number: true},
			{name: "OLDEST", number: true, rank: 1}, {name: "RUNNING", number: true, rank: 4},
			{name: "HELD BACK", number: true, rank: 2}, {name: "FAILING", number: true, rank: 3},
			{name: "CALLS", number: true, rank: 8}, {name: "ERRORS", number: true, rank: 5},
			{name: "PER SECOND", number: true, rank: 7}, {name: "LAG", number: true, rank: 6},
			{name: "AWAITED", number: true, rank: 9},
		},
	}
	for _, c := range f.Controllers {
		h := c.Health
		t.rows = append(t.rows, row{
			cells: []cell{
				text(h.Name), text(string(h.State)), count(c.Queued), duration(h.Waiting.Duration),
				count(h.RunningCalls), count(h.ParkedKeys), count(h.BackingOff), count(h.Calls),
				count(h.Errors), rate(c.Rate), duration(h.Lag.Mean()),
				count(h.AwaitedWrites),
			},
			id: h.Name, link: controllerLink(h.Name), bad: f.hasProblem("controller " + h.Name),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Skipped)) {
		t.rows = append(t.rows, row{
			cells: append([]cell{text(name), text("Skipped")}, make([]cell, len(t.columns)-2)...),
			id:    name, bad: true,
		})
	}
	return t
}

func (f figures) leases() table {
	t := table{
		name: "leases", empty: "No leases.",
		columns: []column{
			{name: "LEASE", grows: true}, {name: "STATE"}, {name: "HOLDER", grows: true},
			{name: "FOR", number: true, rank: 1}, {name: "REMAINING", number: true, rank: 2},
			{name: "CHANGES", number: true, rank: 3}, {name: "ERROR", wraps: true},
		},
	}
	for _, e := range f.Elections {
		t.rows = append(t.rows, row{
			cells: []cell{
				text(e.Lease), text(string(e.State)), text(e.Holder), since(e.Since, f.At),
				duration(e.Remaining), count(e.Transitions), text(e.LastError),
			},
			id: e.Lease, bad: f.hasProblem("lease " + e.Lease),
		})
	}
	return t
}

func (f figures) groups() table {
	t := table{
		name: "shards", empty: "No groups of shards.",
		columns: []column{
			{name: "GROUP", grows: true}, {name: "STATE"}, {name: "COVERED", number: true},
			{name: "UNCOVERED", number: true, rank: 1}, {name: "OWNED", number: true, rank: 2},
			{name: "MOVING", number: true, rank: 3}, {name: "LIVE", number: true, rank: 4},
			{name: "REMAINING", number: true, rank: 5}, {name: "ERROR", wraps: true},
		},
	}
	for _, g := range f.Groups {
		live := 0
		for _, m := range g.Members {
			if m.Live {
				live++
			}
		}
		t.rows = append(t.rows, row{
			cells: []cell{
				text(g.Lease), text(string(g.State)), cell{format.Percent(g.Covered), g.Covered},
				duration(g.UncoveredFor),
				number(g.Owned), count(g.Moving), number(live), duration(g.Remaining), text(g.LastError),
			},
			id: g.Lease, link: groupLink(g.Lease), bad: f.hasProblem("group " + g.Lease),
		})
	}
	return t
}

func (f figures) tables() string {
	var b strings.Builder
	for i, t := range f.screens() {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.ToUpper(t.name) + "\n")
		if len(t.rows) == 0 {
			b.WriteString(t.empty + "\n")
			continue
		}
		rows := t.sorted(sorting{})
		widths, _ := t.widths(rows, 0)
		b.WriteString(t.heading(widths) + "\n")
		for _, r := range rows {
			b.WriteString(t.lines(r.cells, widths, 0)[0] + "\n")
		}
	}
	return b.String()
}
