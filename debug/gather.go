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

func (h *Handler) informer(name string) (gather.Informer, error) {
	all := h.figures().Informers
	names := make([]string, len(all))
	for n, i := range all {
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
	for _, i := range figures.Informers {
		s := sample{"objects": float64(i.Health.Objects), "queued": float64(i.Health.Queued)}
		for _, handler := range i.Health.Handlers {
			s["delivered"] += float64(handler.Delivered)
			s["pending"] += float64(handler.Pending)
			s["delivered to "+handler.Name] = float64(handler.Delivered)
			s["pending of "+handler.Name] = float64(handler.Pending)
		}
		all["informer "+i.Name] = s
	}
	for _, of := range figures.Controllers {
		c := of.Health
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
