package debug

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// figures returns the health of all sources. The names of the handlers of an informer are unique.
func (h *Handler) figures() *gather.Figures {
	all := h.sources.Read()
	for n := range all.Informers {
		of := &all.Informers[n].Health
		of.Handlers = slices.Clone(of.Handlers)
		handlers := inspect.Names{}
		for n := range of.Handlers {
			of.Handlers[n].Name = handlers.Distinct(of.Handlers[n].Name)
		}
	}
	return all
}

// informerOf returns the informer of a name.
func informerOf(all *gather.Figures, name string) (gather.Informer, error) {
	names := make([]string, len(all.Informers))
	for n, i := range all.Informers {
		if i.Name == name {
			return i, nil
		}
		names[n] = i.Name
	}
	return gather.Informer{}, missing("informer", name, names)
}

// missing returns the error for the page of an informer, controller or group that does not exist.
func missing(what, name string, names []string) error {
	return fmt.Errorf("there is no %s %q: there are %s", what, name, strings.Join(names, ", "))
}

// sample returns the figures that the pages show over time.
func (h *Handler) sample() map[string]sample {
	all, figures := map[string]sample{}, h.figures()
	anew := h.restarts.add(figures.Informers)
	for _, i := range figures.Informers {
		s := sample{
			"objects": float64(i.Health.Objects), "queued": float64(i.Health.Queued),
			"lists anew": float64(anew[i.Name].lists), "watches anew": float64(anew[i.Name].watches),
			"delivered": 0, "pending": 0,
		}
		for _, handler := range i.Health.Handlers {
			s["delivered"] += float64(handler.Delivered)
			s["pending"] += float64(handler.Pending)
			s[counterPrefix+handler.Name] = float64(handler.Delivered)
			s["pending of "+handler.Name] = float64(handler.Pending)
		}
		all["informer "+i.Name] = s
	}
	for _, of := range figures.Controllers {
		c := of.Health
		all["controller "+c.Name] = sample{
			"calls": float64(c.Calls), "errors": float64(c.Errors), "queued": float64(c.Queued.Sum()),
			"age": c.Waiting.Seconds(), "lag sum": c.Lag.Sum.Seconds(), "lag count": float64(c.Lag.Count()),
		}
	}
	for _, e := range figures.Elections {
		all["lease "+e.Lease] = sample{"terms": float64(e.Transitions)}
	}
	for _, g := range figures.Groups {
		moves := g.Health.Moves
		all["group "+g.Health.Lease] = sample{"in": float64(moves.In), "out": float64(moves.Out)}
	}
	heap, system := memory()
	all["process"] = sample{"heap": float64(heap), "system": float64(system)}
	return all
}

func isFollowed(i health.Informer) bool {
	return i.Synced && !i.State.Failing() && i.State != tidings.StateStopped
}
