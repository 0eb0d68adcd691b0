package debug

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/see/gather"
)

// ControllerFigures is the JSON form of the page of a controller.
type ControllerFigures struct {
	ControllerRow
	// Problems are those of the controller, and of the informers that it follows.
	Problems []Problem `json:"problems,omitempty"`
	// Pages are the names of the pages of the informers that it follows.
	Pages map[string]string `json:"-"`
	// Guard counts the writes of all controllers of its manager; missing without a guard.
	Guard *guard.Health `json:"guard,omitempty"`
	// WithoutManagers reports whether the field managers of a fight or loop are not known.
	WithoutManagers bool `json:"-"`
	// Waits are up to 100 keys in each state in which they wait, those that have waited for the
	// longest time first, and Tables the same by state.
	Waits  []controller.Wait `json:"waits,omitempty"`
	Tables []WaitTable       `json:"-"`
	// Failures are the last failed calls by the texts of their errors, the most frequent first.
	Failures []Failures `json:"failures,omitempty"`
	// History has the graphs of the last hour. In JSON it is there with the parameter history.
	History  *History  `json:"history,omitempty"`
	Pager    Pager     `json:"-"`
	Commands []Command `json:"commands,omitempty"`
	// LastCalls are up to 20 calls, the newest first, from the number of the parameter from on, and
	// LastFailed up to 20 that failed.
	LastCalls  []controller.Call `json:"lastCalls,omitempty"`
	LastFailed []controller.Call `json:"lastFailed,omitempty"`
}

func (h *Handler) controllerPage(r *http.Request, all *gather.Figures) (any, error) {
	name := r.FormValue("name")
	var names []string
	for _, of := range all.Controllers {
		names = append(names, of.Health.Name)
		if c := of.Health; c.Name == name {
			f := ControllerFigures{ControllerRow: h.controllerRow(c), Pages: map[string]string{}}
			f.Problems = controllerProblems(of, now())
			f.Guard = of.Guard
			marks := []string{"lease "}
			for _, i := range c.Informers {
				marks = append(marks, "informer "+i.Name)
				at := longestPrefix(i.Name, all.Informers)
				f.Pages[i.Name] = at
				if followed, err := informerOf(all, at); err == nil {
					f.Problems = append(f.Problems, h.cacheProblems(followed, now())...)
				}
			}
			f.Problems = sorted(f.Problems)
			f.History = h.historyOf(r, controllerGraphs(c.Name), marks...)
			for _, r := range append(slices.Clip(c.Fights), c.Looping...) {
				f.WithoutManagers = f.WithoutManagers || r.Manager == ""
			}
			f.Waits = of.Waits("")
			f.Tables = waitTablesOf(c, f.Waits)
			f.LastCalls = of.Calls("")
			f.Failures = failuresOf(f.LastCalls)
			for _, call := range f.LastCalls {
				if call.Error != "" && len(f.LastFailed) < keyCalls {
					f.LastFailed = append(f.LastFailed, call)
				}
			}
			f.Pager = pagerOf(r, len(f.LastCalls), keyCalls)
			f.LastCalls = f.LastCalls[f.Pager.From:f.Pager.To]
			f.Commands = []Command{profile("controller", c.Name)}
			return f, nil
		}
	}
	if lacks := all.Skipped[name]; lacks != "" {
		return nil, fmt.Errorf("controller %q is skipped: %s", name, lacks)
	}
	return nil, missing("controller", name, names)
}

func fightText(f controller.Rewrite) string {
	return fmt.Sprintf("%s of %s is changed in turn by the calls of %s%s and by others%s",
		fieldsText(f), f.Object, f.Key, managerText(f.Manager), managerText(f.Other))
}

// loopText describes a loop: the calls, and the fields that they change because of their own
// writes.
func loopText(l controller.Rewrite) string {
	return fmt.Sprintf("calls of %s%s change %s of %s because of their own writes",
		l.Key, managerText(l.Manager), fieldsText(l), l.Object)
}

func fieldsText(r controller.Rewrite) string { return strings.Join(r.Fields, ", ") }

// managerText returns the name of a field manager, "" if it is not known.
func managerText(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}
