package controller

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/guard"
)

// ManagerHealth describes a manager.
type ManagerHealth struct {
	// Election describes the replica as a candidate; nil without an election.
	Election *election.Health `json:"election,omitempty"`
	// Guard describes the guard of the controllers; nil without ManagerOptions.Guard.
	Guard *guard.Health `json:"guard,omitempty"`
	// Controllers describes the controllers that are to run, in the order of Add.
	Controllers []Health `json:"controllers"`
	// Skipped has the missing resource of each controller that waits for one.
	Skipped map[string]string `json:"skipped,omitempty"`
}

// Health describes the manager.
func (m *Manager) Health() ManagerHealth {
	m.mu.Lock()
	units := slices.Clone(m.units)
	h := ManagerHealth{}
	var runners []Runner
	for _, u := range units {
		switch {
		case u.runner != nil:
			runners = append(runners, u.runner)
		case u.missing != "":
			if h.Skipped == nil {
				h.Skipped = map[string]string{}
			}
			h.Skipped[u.Name] = u.missing
		}
	}
	m.mu.Unlock()
	for _, r := range runners {
		h.Controllers = append(h.Controllers, r.Health())
	}
	if m.elector != nil {
		candidate := m.elector.Health()
		h.Election = &candidate
	}
	if m.o.Guard != nil {
		h.Guard = new(m.o.Guard.Health())
	}
	return h
}

// check is a check of a controller or of the manager, with a problem if it is not passed.
type check struct{ name, problem string }

// Handler answers /livez, /healthz and /readyz as Kubernetes' components do: with 200 and "ok", or
// with 503 and a line for each check. With ?verbose the lines come in any case.
//
// A manager is alive unless a controller, or Run, has ended with an error, or hangs for longer than
// ManagerOptions.HungAfter. It is ready during Run when its informers are synced, and, if this
// replica holds the Lease, its controllers run: a standby is ready. With ManagerOptions.Slots,
// these are the controllers that the group assigns to it. AddHealthzCheck and AddReadyzCheck add
// checks.
func (m *Manager) Handler() http.Handler {
	mux := http.NewServeMux()
	serve := func(path string, checks func() []check) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			writeChecks(w, r, append(checks(), m.own(r, path)...))
		})
	}
	serve("/livez", m.live)
	serve("/healthz", m.live)
	serve("/readyz", m.ready)
	return mux
}

// ownCheck is a check of the program.
type ownCheck struct {
	name  string
	check func(*http.Request) error
	ready bool // of /readyz
}

// AddHealthzCheck adds a check of the program's own to /livez and /healthz. An error of the
// function is a failure. Its name must not be taken.
func (m *Manager) AddHealthzCheck(name string, check func(*http.Request) error) error {
	return m.addCheck(ownCheck{name, check, false})
}

// AddReadyzCheck adds a check of the program's own to /readyz, as AddHealthzCheck does to /livez.
func (m *Manager) AddReadyzCheck(name string, check func(*http.Request) error) error {
	return m.addCheck(ownCheck{name, check, true})
}

func (m *Manager) addCheck(added ownCheck) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	isTaken := slices.ContainsFunc(m.checks, func(c ownCheck) bool {
		return c.ready == added.ready && c.name == added.name
	})
	switch {
	case added.name == "" || added.check == nil:
		return errors.New("controller: a check of a Manager needs a name and a function")
	case isTaken:
		return fmt.Errorf("controller: the Manager has a check %q already", added.name)
	}
	m.checks = append(m.checks, added)
	return nil
}

// own makes the checks of the program for a path.
func (m *Manager) own(r *http.Request, path string) (results []check) {
	m.mu.Lock()
	checks := slices.Clone(m.checks)
	m.mu.Unlock()
	for _, c := range checks {
		if c.ready == (path == "/readyz") {
			results = append(results, check{c.name, errorText(c.check(r))})
		}
	}
	return results
}

// live has a check for each controller.
func (m *Manager) live() []check {
	hung := map[string]string{}
	for _, h := range m.Health().Controllers {
		if m.o.HungAfter > 0 && h.HungFor.Duration >= m.o.HungAfter {
			hung[h.Name] = fmt.Sprintf("hangs: all %d workers have been in calls for %v, "+
				"that of %s is the oldest, and %s waits", h.Workers,
				h.HungFor.Round(time.Second), h.Running[0].Key, h.Oldest)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var checks []check
	if m.ended {
		checks = append(checks, check{"manager", errorText(m.failure)})
	}
	for _, u := range m.units {
		checks = append(checks, check{"controller " + u.Name, cmp.Or(errorText(u.ended), hung[u.Name])})
	}
	return checks
}

// ready has a check for each informer, and for each controller that is to run at present.
func (m *Manager) ready() []check {
	var checks []check
	m.mu.Lock()
	switch {
	case m.ended:
		checks = append(checks, check{"manager", "has ended"})
	case !m.running:
		checks = append(checks, check{"manager", "does not run yet"})
	}
	m.mu.Unlock()
	for _, i := range m.factory.Health() {
		c := check{name: "informer " + i.Name}
		if !i.Synced && i.State != tidings.StateNoSuchResource {
			c.problem = "is not synced: " + string(i.State)
			if i.LastError != nil {
				c.problem += ": " + i.LastError.Error()
			}
		}
		checks = append(checks, c)
	}
	h := m.Health()
	isStandby := h.Election != nil && h.Election.State != election.Leading
	if isStandby {
		checks = append(checks, check{name: "election (standby)"})
	}
	assigned := m.assigned()
	for _, c := range h.Controllers {
		if isStandby && !m.isOfEveryReplica(c.Name) {
			continue
		}
		now := check{name: "controller " + c.Name}
		if isHere, ok := assigned[c.Name]; ok && !isHere && c.State == StateStopped {
			now.name += " (standby)"
		} else if c.State != StateRunning && c.State != StateDone {
			now.problem = "is " + string(c.State)
			if len(c.WaitingFor) > 0 {
				now.problem += ", and waits for " + strings.Join(c.WaitingFor, ", ")
			}
		}
		checks = append(checks, now)
	}
	return checks
}

// isOfEveryReplica reports whether a controller runs without an election.
func (m *Manager) isOfEveryReplica(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.units, func(u *unit) bool { return u.Name == name && u.EveryReplica })
}

// assigned has the controllers that the group leads as a whole, by name: true for those that it has
// assigned to this process, and that are ready.
func (m *Manager) assigned() map[string]bool {
	if m.o.Slots == nil {
		return nil
	}
	ready, names := m.o.Slots.Work().Ready, map[string]bool{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.units {
		if u.number > 0 && !m.ended {
			names[u.Name] = ready.Has(u.number)
		}
	}
	return names
}

// writeChecks writes the result of checks.
func writeChecks(w http.ResponseWriter, r *http.Request, checks []check) {
	failed := slices.ContainsFunc(checks, func(c check) bool { return c.problem != "" })
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if failed {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if failed || r.URL.Query().Has("verbose") {
		for _, c := range checks {
			if c.problem == "" {
				fmt.Fprintf(w, "[+] %s\n", c.name)
			} else {
				fmt.Fprintf(w, "[-] %s %s\n", c.name, c.problem)
			}
		}
	}
	if !failed {
		fmt.Fprintln(w, "ok")
	}
}
