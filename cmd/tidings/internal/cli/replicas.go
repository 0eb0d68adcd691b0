package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/cmd/tidings/internal/fleet"
	"github.com/tidings-go/tidings/cmd/tidings/internal/replicas"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/shard"
)

const (
	minReplicas, maxReplicas = 2, 10
	// namespacesOfReplicas is the number of namespaces that replicas divide among them.
	namespacesOfReplicas = 60
	// groupName is the name of the group of a demo's replicas.
	groupName = "fleet"
)

// fleetOptions returns the options of the demo's fleet.
func (d *demonstration) fleetOptions(logger *slog.Logger) fleet.Options {
	o := fleet.Options{Seed: d.o.seed, Pods: d.o.pods, Logger: logger}
	if d.o.isDivided {
		o.Namespaces, o.Written = namespacesOfReplicas, d.made.Load
	}
	return o
}

// startReplicas starts the replicas of a demo, which run the cluster's controllers. d.replicas.End
// ends them.
func (d *demonstration) startReplicas(c *common) error {
	d.replicas = &replicas.Group{
		Lease: metav1.NamespaceDefault + "/" + groupName, Duration: replicas.Duration,
		Print: func(line string) error { return say(d.screen, "%s", line) },
	}
	for i := range d.o.replicas {
		name := string(rune('a' + i))
		arguments := []string{"replica", "--server", d.server.local, "--identity", name}
		if c.verbose {
			arguments = append(arguments, "--verbose")
		}
		p, err := replicas.Start(c.streams.Err, name, arguments...)
		if err != nil {
			return err
		}
		d.replicas.Replicas = append(d.replicas.Replicas, p)
		err = say(d.screen, "replica %s is process %d, with pages at %s", name, p.PID(), p.Pages)
		if err != nil {
			return err
		}
	}
	first := d.replicas.Replicas[0]
	return errors.Join(
		say(d.screen, "the group's map: %s", first.GroupPage(d.replicas.Lease)),
		say(d.screen, "end one in another terminal, and see its slots move: kill -9 %d", first.PID()))
}

// endReplicas ends the replicas in order, while the server still accepts their writes.
func (d *demonstration) endReplicas(ctx context.Context) error {
	if d.replicas == nil {
		return nil
	}
	return d.replicas.End(context.WithoutCancel(ctx))
}

// follow prints the changes of the replicas until stop is called. failed receives an error.
func (d *demonstration) follow(ctx context.Context) (failed <-chan error, stop func()) {
	if d.replicas == nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	errs, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if err := d.replicas.Follow(ctx); err != nil {
			errs <- err
		}
	}()
	return errs, func() {
		cancel()
		<-ended
	}
}

// replicaOptions are the flags of `tidings replica`, which the demo starts.
type replicaOptions struct{ server, identity string }

func newReplica(c *common) *cobra.Command {
	var o replicaOptions
	cmd := &cobra.Command{
		Use:    "replica",
		Short:  "Be a replica of a demo",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(os.Interrupt) // the terminal sends it to the parent too
			ctx := replicas.UntilEOF(cmd.Context(), cmd.InOrStdin())
			return o.run(ctx, c.logger(c.screen(), view.Secrecy{}), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.server, "server", "", "the address of the demo's API server")
	cmd.Flags().StringVar(&o.identity, "identity", "", "the name of the replica")
	return cmd
}

// run runs the controllers for the slots that the replica holds, until ctx ends.
func (o replicaOptions) run(ctx context.Context, logger *slog.Logger, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config := &rest.Config{Host: o.server, QPS: -1}
	slots := controller.NewSlots(controller.ByNamespace)
	manager, factory, err := fleet.NewReplica(config, logger, slots)
	if err != nil {
		return err
	}
	group, err := shard.Join(ctx, config, slots, shard.Options{
		Namespace: metav1.NamespaceDefault, Name: groupName, Identity: o.identity,
		Duration: replicas.Duration, Logger: logger,
	})
	if err != nil {
		return err
	}
	pages, stop, err := servePages(anyPort, debug.Options{Bodies: true}, factory, manager, group)
	if err != nil {
		return err
	}
	defer stop()
	if err := replicas.Announce(out, pages); err != nil {
		return err
	}
	return manager.Run(ctx)
}
