package debug

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// informer is an informer, under a name that is unique among the informers of the pages.
type informer struct {
	name   string
	health health.Informer
	view   inspect.View // nil for one that was released
}

// informers returns all informers: those of factories first, in the order in which they were asked
// for. If two have one name, the second is called "name#2". The same holds for two handlers of an
// informer.
func (h *Handler) informers() []informer {
	var all []informer
	seen := inspect.Names{}
	add := func(of health.Informer, view inspect.View) {
		of.Handlers = slices.Clone(of.Handlers)
		handlers := inspect.Names{}
		for n := range of.Handlers {
			of.Handlers[n].Name = handlers.Distinct(of.Handlers[n].Name)
		}
		all = append(all, informer{seen.Distinct(of.Name), of, view})
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

func (h *Handler) informer(name string) (informer, error) {
	all := h.informers()
	names := make([]string, len(all))
	for n, i := range all {
		if i.name == name {
			return i, nil
		}
		names[n] = i.name
	}
	return informer{}, missing("informer", name, names)
}

// missing returns the error for the page of an informer, controller or group that does not exist.
func missing(what, name string, names []string) error {
	return fmt.Errorf("there is no %s %q: there are %s", what, name, strings.Join(names, ", "))
}

// controllerOf is a controller, under a name that is unique among the controllers of the pages.
type controllerOf struct {
	health controller.Health              // with that name
	guard  *guard.Health                  // of its manager; nil without one
	calls  func(string) []controller.Call // the last calls for a key, "" for all
}

// controllers returns all controllers, and the health of elections. If two have one name, the second
// is called "name#2".
func (h *Handler) controllers() (all []controllerOf, elections []election.Health, skipped map[string]string) {
	skipped = map[string]string{}
	seen := inspect.Names{}
	add := func(of controllerOf) {
		of.health.Name = seen.Distinct(of.health.Name)
		all = append(all, of)
	}
	for _, m := range h.o.Managers {
		of := m.Health()
		for _, c := range of.Controllers {
			add(controllerOf{c, of.Guard, func(key string) []controller.Call {
				return m.Calls(c.Name, key)
			}})
		}
		if of.Election != nil {
			elections = append(elections, *of.Election)
		}
		maps.Copy(skipped, of.Skipped)
	}
	for _, c := range h.o.Controllers {
		of := controllerOf{c.Health(), nil, func(string) []controller.Call { return nil }}
		if c, ok := c.(interface {
			Calls(key string) []controller.Call
		}); ok {
			of.calls = c.Calls
		}
		add(of)
	}
	return all, elections, skipped
}

// sample returns the figures that the pages show over time.
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
	for _, of := range controllers {
		c := of.health
		queued := c.Queued.Sum()
		all["controller "+c.Name] = sample{
			"calls": float64(c.Calls), "errors": float64(c.Errors), "queued": float64(queued),
		}
	}
	return all
}

func isFollowed(i health.Informer) bool {
	return i.Synced && !i.State.Failing() && i.State != tidings.StateStopped
}
