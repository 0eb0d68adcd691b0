package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/clientgo/informers"
)

// options are what the command line says.
type options struct {
	controllers []string // names, "*", and "-" before what is left out
	workers     int      // of each controller
	listen      string
}

// manager is what every controller is started with.
type manager struct {
	client    kubernetes.Interface
	factory   informers.SharedInformerFactory
	available map[schema.GroupVersionResource]bool
	workers   int
	running   *sync.WaitGroup // holds every controller's goroutine
	out       *output
}

// initFunc starts a controller and returns its page, which may be nil. It reports
// false when the server lacks the controller's resource. The informers that it asks
// the factory for are started after it has returned.
type initFunc func(ctx context.Context, m manager) (page http.Handler, started bool, err error)

// initializers is the table of all controllers.
func initializers() map[string]initFunc {
	return map[string]initFunc{
		"budgets":  startBudgets,
		"replicas": startReplicas,
		"teams":    startTeams,
	}
}

func names(table map[string]initFunc) []string { return slices.Sorted(maps.Keys(table)) }

// run starts the controllers that are asked for, then the informers that these need,
// and returns when ctx has ended and all of them have.
func run(ctx context.Context, client kubernetes.Interface, o options, out *output) error {
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
	// Last in, first out: everything is told to stop, then waited for.
	defer m.factory.Shutdown()
	defer running.Wait()
	defer stop()

	pages := http.NewServeMux()
	for _, name := range chosen {
		page, started, err := table[name](ctx, m)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		if !started {
			out.print("skipped %s: the server lacks its resource", name)
			continue
		}
		out.print("started %s", name)
		if page != nil {
			pages.Handle("/"+name, page)
		}
	}
	m.factory.StartWithContext(ctx)
	if result := m.factory.WaitForCacheSyncWithContext(ctx); result.Err != nil {
		return fmt.Errorf("stopped before the caches were filled: %w", result.Err)
	}
	return serve(ctx, o.listen, pages)
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

// discover asks the server what it has. A group that does not answer, such as one of
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
			return nil, fmt.Errorf("the server names a group version that is none: %w", err)
		}
		for _, resource := range list.APIResources {
			available[gv.WithResource(resource.Name)] = true
		}
	}
	return available, nil
}

// serve answers with the controllers' pages until ctx ends.
func serve(ctx context.Context, address string, pages http.Handler) error {
	if address == "" {
		<-ctx.Done()
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	fmt.Fprintf(os.Stderr, "pages at http://%s\n", listener.Addr())
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second}
	unregister := context.AfterFunc(ctx, func() { server.Close() }) //nolint:errcheck // it is over
	defer unregister()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
