package gather

import (
	"maps"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/shard"
	"github.com/tidings-go/tidings/source"
)

// Figures is the health of all sources, in the order in which they were added.
type Figures struct {
	Informers   []Informer
	Controllers []Controller
	Guards      []guard.Health
	Elections   []election.Health
	Groups      []Group
	// Skipped are the controllers that managers skip, with the reasons.
	Skipped map[string]string
	// Sharing is what each factory knows of its table of shared parts.
	Sharing []source.TableStats

	named struct{ informers, controllers inspect.Names }
}

// Informer is the health of an informer.
type Informer struct {
	// Name is unique among the informers: the second "pods.v1" is "pods.v1#2".
	Name   string
	Health health.Informer
	View   inspect.View // nil for one that was released
	// Source is the source if it has this informer alone, and nil for one of a factory.
	Source any
}

// Controller is the health of a controller. Its name is unique, as in [Informer].
type Controller struct {
	Health controller.Health
	Guard  *guard.Health // of its manager; nil without one
	// Calls returns the last calls for a key, "" for all.
	Calls func(key string) []controller.Call
	// Waits says why keys wait: up to 100 of each state, or one key.
	Waits func(key string) []controller.Wait
}

// Group is the health of a group of shards.
type Group struct {
	Health shard.Health
	Source any
	// Map returns the entries of its map.
	Map func() []shard.Entry
}

func (f *Figures) informer(name string, i Informer) {
	i.Name = f.named.informers.Distinct(name)
	f.Informers = append(f.Informers, i)
}

func (f *Figures) controller(c Controller) {
	c.Health.Name = f.named.controllers.Distinct(c.Health.Name)
	f.Controllers = append(f.Controllers, c)
}

// manager is what is read of a *controller.Manager.
type manager interface {
	Health() controller.ManagerHealth
	Calls(name, key string) []controller.Call
}

// manager adds the controllers, the guard and the election of a manager.
func (f *Figures) manager(of manager) {
	h := of.Health()
	waits := func(string, string) []controller.Wait { return nil }
	if of, ok := of.(interface {
		Waits(name, key string) []controller.Wait
	}); ok {
		waits = of.Waits
	}
	for _, c := range h.Controllers {
		name := c.Name
		f.controller(Controller{
			Health: c, Guard: h.Guard,
			Calls: func(key string) []controller.Call { return of.Calls(name, key) },
			Waits: func(key string) []controller.Wait { return waits(name, key) },
		})
	}
	if h.Guard != nil {
		f.Guards = append(f.Guards, *h.Guard)
	}
	if h.Election != nil {
		f.Elections = append(f.Elections, *h.Election)
	}
	maps.Copy(f.Skipped, h.Skipped)
}
