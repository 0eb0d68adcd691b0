package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/footprint"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/shard"
)

// Options are the choices of a [Collector]. The zero value is ready.
type Options struct {
	// Selections keeps the selections of informers in their names, as in
	// "pods.v1 [in default]": then labels have namespaces and selectors. Without it, several
	// informers of a resource have numbers.
	Selections bool
	// ControllerRuntime adds the metrics of controllers and elections under the names that
	// controller-runtime has for its own: controller_runtime_…, workqueue_… and leader_election_….
	// A registry cannot have both.
	ControllerRuntime bool
	// ClientGo adds the metrics of drop-in informers that have a name, under the names that
	// Kubernetes' components have for those of client-go: informer_….
	ClientGo bool
}

// Collector is a prometheus.Collector of factories, informers, controllers, guards, elections and
// groups of shards. Use [New].
type Collector struct {
	o           Options
	families    families
	informers   informerFamilies
	controllers controllerFamilies
	guards      guardFamilies
	elections   electionFamilies
	groups      groupFamilies
	runtime     runtimeFamilies  // without families unless Options.ControllerRuntime is set
	clientGo    clientGoFamilies // without families unless Options.ClientGo is set
	memory      footprint.Estimates

	sources gather.Sources
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector without sources.
func New(o Options) *Collector {
	c := &Collector{o: o}
	c.sources.NameOf = c.nameOf
	c.informers = newInformerFamilies(&c.families)
	c.controllers = newControllerFamilies(&c.families)
	c.guards = newGuardFamilies(&c.families)
	c.elections = newElectionFamilies(&c.families)
	c.groups = newGroupFamilies(&c.families)
	if o.ControllerRuntime {
		c.runtime = newRuntimeFamilies(&c.families)
	}
	if o.ClientGo {
		c.clientGo = newClientGoFamilies(&c.families)
	}
	return c
}

// Add adds sources: each is a *tidings.Factory, a factory of a drop-in package, an informer of
// either that has no factory, a *controller.Manager, a *controller.Controller without a manager,
// a *controller.Guard or *election.Elector without one, or a *shard.Group. A wrapper of a drop-in
// informer is added by its GetStore.
// A source that was added before is not added again. With an error, no source is added.
func (c *Collector) Add(sources ...any) error {
	if err := c.sources.Add(sources...); err != nil {
		return fmt.Errorf("metrics: Add: %w", err)
	}
	return nil
}

// Remove removes a source. It does nothing for one that was not added.
func (c *Collector) Remove(of any) { c.sources.Remove(of) }

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range c.families {
		out <- f.desc
	}
}

// Collect reads the health of all sources, and sends it as metrics. An informer without a factory
// that has stopped, and a group that was left, have no metrics any more.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := &scrape{
		Collector: c, out: out, guardNames: inspect.Names{}, leaseNames: inspect.Names{},
		groupNames: inspect.Names{}, views: map[string]inspect.View{},
		published: map[health.Published]bool{},
	}
	all := c.sources.Read()
	for _, i := range all.Informers {
		if i.Source != nil && i.Health.State == health.StateStopped {
			c.Remove(i.Source)
			continue
		}
		s.informer(i)
	}
	for _, of := range all.Controllers {
		s.controller(of.Health)
	}
	for _, h := range all.Guards {
		s.guard(h)
	}
	for _, h := range all.Elections {
		s.election(h)
	}
	for _, g := range all.Groups {
		if g.Health.State == shard.Stopped {
			c.Remove(g.Source)
			continue
		}
		s.group(g.Health)
	}
	for name, memory := range c.memory.Update(s.views) {
		s.send(c.informers.memory, labels{}.label("informer", name), float64(memory.Bytes))
	}
}

// scrape is one call of Collect.
type scrape struct {
	*Collector
	out chan<- prometheus.Metric

	guardNames, leaseNames, groupNames inspect.Names

	views map[string]inspect.View // of the informers, by name

	published map[health.Published]bool // the names of client-go's that were sent
}

func (s *scrape) send(f *family, l labels, value float64) {
	s.out <- &sample{f, l, value}
}

func (s *scrape) sendDurations(f *family, l labels, d health.Durations) {
	s.out <- &distribution{f, l, d}
}
