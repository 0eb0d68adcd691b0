package cluster

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
)

// Cluster runs controllers, a scheduler and nodes beside an API server.
type Cluster struct {
	running sync.WaitGroup
}

// Start starts the controllers of these names, a scheduler and so many nodes. They run
// until ctx ends.
func Start(
	ctx context.Context, config *rest.Config, i Informers, nodes int, controllers ...string,
) (*Cluster, error) {
	c := &Cluster{}
	if err := c.startNodes(ctx, config, nodes); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	if err := c.startControllers(ctx, config, i, controllers); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	if err := c.startScheduler(ctx, config, i); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return c, nil
}

// Wait returns when the cluster has ended.
func (c *Cluster) Wait() { c.running.Wait() }
