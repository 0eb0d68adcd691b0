package debug

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/inspect"
)

// informer is an informer under the name that is its own among those of the pages.
type informer struct {
	name   string
	health health.Informer
	view   inspect.View // nil for one that was released
}

// informers returns all informers: those of factories first, in the order in which they were asked
// for. Of two with one name, the second is called "name#2".
func (h *Handler) informers() []informer {
	var all []informer
	seen := map[string]int{}
	add := func(of health.Informer, view inspect.View) {
		seen[of.Name]++
		name := of.Name
		if n := seen[name]; n > 1 {
			name = fmt.Sprintf("%s#%d", name, n)
		}
		all = append(all, informer{name, of, view})
	}
	addAll := func(of any) {
		views, _ := inspect.ViewsOf(of)
		for _, view := range views {
			add(view.Health(), view)
		}
	}
	for _, f := range h.o.Factories {
		addAll(f)
	}
	for _, i := range h.o.Informers {
		view, err := inspect.Of(i)
		if err != nil {
			view = nil // it was released
		}
		add(i.Health(), view)
	}
	for _, of := range h.o.DropIns {
		addAll(of)
	}
	return all
}

// informer returns the informer of a name.
func (h *Handler) informer(name string) (informer, error) {
	all := h.informers()
	names := make([]string, len(all))
	for n, i := range all {
		if i.name == name {
			return i, nil
		}
		names[n] = i.name
	}
	return informer{}, fmt.Errorf("there is no informer %q: there are %s", name, strings.Join(names, ", "))
}

// controllers returns the health of all controllers, and that of elections.
func (h *Handler) controllers() (all []controller.Health, elections []election.Health, skipped map[string]string) {
	skipped = map[string]string{}
	for _, m := range h.o.Managers {
		of := m.Health()
		all = append(all, of.Controllers...)
		if of.Election != nil {
			elections = append(elections, *of.Election)
		}
		maps.Copy(skipped, of.Skipped)
	}
	for _, c := range h.o.Controllers {
		all = append(all, c.Health())
	}
	return all, elections, skipped
}

// calls returns the last calls of a controller for a key, "" for all.
func (h *Handler) calls(name, key string) []controller.Call {
	for _, m := range h.o.Managers {
		if calls := m.Calls(name, key); calls != nil {
			return calls
		}
	}
	for _, c := range h.o.Controllers {
		if c, ok := c.(interface {
			Controller
			Calls(key string) []controller.Call
		}); ok && c.Health().Name == name {
			return c.Calls(key)
		}
	}
	return nil
}

// sample has the figures that the pages show over time.
func (h *Handler) sample() map[string]sample {
	all := map[string]sample{}
	for _, i := range h.informers() {
		s := sample{"objects": float64(i.health.Objects), "queued": float64(i.health.Queued)}
		for _, handler := range i.health.Handlers {
			s["delivered"] += float64(handler.Delivered)
			s["pending"] += float64(handler.Pending)
			s["delivered to "+handler.Name] = float64(handler.Delivered)
			s["pending of "+handler.Name] = float64(handler.Pending)
		}
		all["informer "+i.name] = s
	}
	controllers, _, _ := h.controllers()
	for _, c := range controllers {
		queued := c.Queued.Changes + c.Queued.Requeues + c.Queued.Background
		all["controller "+c.Name] = sample{
			"calls": float64(c.Calls), "errors": float64(c.Errors), "queued": float64(queued),
		}
	}
	return all
}

// isFollowed reports whether an informer is as it should be.
func isFollowed(i health.Informer) bool {
	return i.Synced && !i.State.Failing() && i.State != tidings.StateStopped
}
