package metrics

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/footprint"
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

	mu      sync.Mutex // guards the rest
	sources []source
}

var _ prometheus.Collector = (*Collector)(nil)

// source is a value whose health is read.
type source struct {
	of any // the value that was added
	// read writes its metrics. It reports whether the source has ended and will never have
	// metrics again.
	read func(*scrape) (over bool)
}

// New returns a collector without sources.
func New(o Options) *Collector {
	c := &Collector{o: o}
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
	var all []source
	for _, of := range sources {
		s, err := sourceOf(of)
		if err != nil {
			return fmt.Errorf("metrics: Add: %w", err)
		}
		all = append(all, s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range all {
		if !slices.ContainsFunc(c.sources, s.isSame) {
			c.sources = append(c.sources, s)
		}
	}
	return nil
}

// Remove removes a source. It does nothing for one that was not added.
func (c *Collector) Remove(of any) {
	c.remove(source{of: of})
}

func (c *Collector) remove(s source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = slices.DeleteFunc(c.sources, s.isSame)
}

func (s source) isSame(other source) bool { return s.of == other.of }

// sourceOf returns the source of a value with a method Health.
func sourceOf(of any) (source, error) {
	if of == nil {
		return source{}, errors.New("the source is nil")
	}
	v := reflect.ValueOf(of)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return source{}, fmt.Errorf("the %T is nil", of)
	}
	if !v.Comparable() {
		return source{}, fmt.Errorf("the %T cannot be compared: pass a pointer to it", of)
	}
	s := source{of: of}
	switch of := of.(type) {
	case informerSet:
		s.read = reader(func() informerSet { return of }, (*scrape).factory)
	case interface{ Health() health.Informer }:
		s.read = func(s *scrape) bool {
			h := of.Health()
			if h.State == health.StateStopped {
				return true
			}
			views, _ := inspect.ViewsOf(of)
			s.informer(h, views...)
			return false
		}
	case interface {
		Health() controller.ManagerHealth
	}:
		s.read = reader(of.Health, (*scrape).manager)
	case interface{ Health() controller.Health }:
		s.read = reader(of.Health, (*scrape).controller)
	case interface{ Health() guard.Health }:
		s.read = reader(of.Health, (*scrape).guard)
	case interface{ Health() election.Health }:
		s.read = reader(of.Health, (*scrape).election)
	case interface{ Health() shard.Health }:
		s.read = func(s *scrape) bool { return s.group(of.Health()) }
	default:
		return source{}, fmt.Errorf("a %T has no health: pass a factory, an informer, "+
			"a controller.Manager, a controller.Controller, a controller.Guard, an "+
			"election.Elector or a shard.Group of this module; of a wrapper of a drop-in informer, pass GetStore()", of)
	}
	return s, nil
}

// reader returns a function that writes the metrics of the health that get returns.
func reader[H any](get func() H, write func(*scrape, H)) func(*scrape) bool {
	return func(s *scrape) bool {
		write(s, get())
		return false
	}
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range c.families {
		out <- f.desc
	}
}

// Collect reads the health of all sources, and sends it as metrics.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	sources := slices.Clone(c.sources)
	c.mu.Unlock()
	s := &scrape{
		Collector: c, out: out, informerNames: inspect.Names{}, controllerNames: inspect.Names{},
		guardNames: inspect.Names{}, leaseNames: inspect.Names{}, groupNames: inspect.Names{},
		views: map[string]inspect.View{}, published: map[health.Published]bool{},
	}
	for _, of := range sources {
		if of.read(s) {
			c.remove(of)
		}
	}
	for name, memory := range c.memory.Update(s.views) {
		s.send(c.informers.memory, labels{}.label("informer", name), float64(memory.Bytes))
	}
}

// informerSet is a factory of informers.
type informerSet interface{ Health() []health.Informer }

func (s *scrape) factory(of informerSet) {
	views, ok := inspect.ViewsOf(of)
	for _, view := range views {
		s.informer(view.Health(), view)
	}
	if ok {
		return
	}
	for _, h := range of.Health() {
		s.informer(h)
	}
}

// scrape is one call of Collect.
type scrape struct {
	*Collector
	out chan<- prometheus.Metric

	informerNames, controllerNames, guardNames, leaseNames, groupNames inspect.Names

	views map[string]inspect.View // of the informers, by name

	published map[health.Published]bool // the names of client-go's that were sent
}

func (s *scrape) send(f *family, l labels, value float64) {
	s.out <- &sample{f, l, value}
}

func (s *scrape) sendDurations(f *family, l labels, d health.Durations) {
	s.out <- &distribution{f, l, d}
}
