package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/examples/clientgo/loop"
)

// options are those of the command line.
type options struct {
	controllers []string // names, "*", and "-" before a name to leave out
	workers     int      // of each controller
}

// manager has the parts that all controllers share.
type manager struct {
	client    kubernetes.Interface
	factory   informers.SharedInformerFactory
	available map[schema.GroupVersionResource]bool
	workers   int
	running   *sync.WaitGroup // counts the controllers
	out       *log.Logger
}

// logger returns a logger whose lines begin with the name of a controller.
func (m manager) logger(name string) *log.Logger { return log.New(m.out.Writer(), name+": ", 0) }

// start runs a controller until ctx ends.
func (m manager) start(ctx context.Context, l *loop.Loop) {
	m.running.Go(func() { l.Run(ctx, m.workers) })
}

// initFunc starts a controller. It reports false when the server lacks the controller's
// resource. Its informers are started after it has returned.
type initFunc func(ctx context.Context, m manager) (started bool, err error)

// initializers is the table of all controllers.
func initializers() map[string]initFunc {
	return map[string]initFunc{
		"budgets": startBudgets,
		"teams":   startTeams,
	}
}

func names(table map[string]initFunc) []string { return slices.Sorted(maps.Keys(table)) }

// run starts the chosen controllers, then their informers, and returns when ctx has ended and
// all of them have stopped.
func run(ctx context.Context, client kubernetes.Interface, o options, out *log.Logger) error {
	if o.workers < 1 {
		return fmt.Errorf("--workers %d: a controller needs at least one", o.workers)
	}
	table := initializers()
	chosen, err := choose(names(table), o.controllers)
	if err != nil {
		return err
	}
	available, err := discover(client.Discovery())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	m := manager{
		client:    client,
		factory:   informers.NewSharedInformerFactory(client, 10*time.Minute),
		available: available,
		workers:   o.workers,
		running:   &running,
		out:       out,
	}
	// Last in, first out: stop everything, then wait for it.
	defer m.factory.Shutdown()
	defer running.Wait()
	defer stop()

	for _, name := range chosen {
		started, err := table[name](ctx, m)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		if !started {
			out.Printf("skipped %s: the server lacks its resource", name)
			continue
		}
		out.Printf("started %s", name)
	}
	m.factory.StartWithContext(ctx)
	if result := m.factory.WaitForCacheSyncWithContext(ctx); result.Err != nil {
		return fmt.Errorf("stopped before the caches were filled: %w", result.Err)
	}
	<-ctx.Done()
	return nil
}

// choose returns which of all names are wanted, in their order.
func choose(all, wanted []string) ([]string, error) {
	for _, w := range wanted {
		if w != "*" && !slices.Contains(all, strings.TrimPrefix(w, "-")) {
			return nil, fmt.Errorf("--controllers: there is no %q; there are %s", w, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		asked := slices.Contains(wanted, "*") || slices.Contains(wanted, name)
		return !asked || slices.Contains(wanted, "-"+name)
	}), nil
}

// discover returns the resources of the server. A group that does not answer, such as one of
// an aggregated API that is down, is left out.
func discover(client discovery.DiscoveryInterface) (map[schema.GroupVersionResource]bool, error) {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the server for its resources: %w", err)
	}
	available := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("the server names an invalid group version: %w", err)
		}
		for _, resource := range list.APIResources {
			available[gv.WithResource(resource.Name)] = true
		}
	}
	return available, nil
}
