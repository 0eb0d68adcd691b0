package cli

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/internal/see/format"
)

type demoOptions struct {
	pods       int
	churn      float64
	length     time.Duration
	seed       uint64
	faults     bool
	replicas   int
	isDivided  bool // with --replicas
	listen     string
	page       string
	kubeconfig string
}

const (
	maxDemoPods  = 200_000
	maxDemoChurn = 10_000
	// demoLength is the default of --for, faultsLength the default with --faults: it is long enough
	// for all of them.
	demoLength, faultsLength = 30 * time.Second, 100 * time.Second
)

const demoHelp = `Demo starts an API server in this process, creates nodes, deployments, pods and more on it, and
changes them as a busy cluster would. Informers follow it over HTTP, and every change that they
receive is shown with the fields that differ. In the end the caches are compared with the server.

With --faults, connections break or fall silent, and the server forgets its history (410 Gone),
forbids a type or is restored from a backup. Demo prints what each fault cost, as the health of the
informers says.

With --replicas, the cluster's controllers run in several processes, which divide its namespaces
among them. Demo prints which process has which slots in the place of the changes. Kill one: its slots
wait for its Lease, and then move to the others.

Demo prints the address of a page that shows how the informers, their handlers and the cluster's
controllers are doing, live. It writes a kubeconfig, so that kubectl and "tidings watch" can use the
cluster, too. Its controllers react to their writes: to "kubectl scale", "set image", "rollout undo",
"restart", "pause" and "resume", to pods that you delete or evict, and to deployments that you create
or delete.

Nothing needs to be installed, and nothing leaves this machine.`

const demoExamples = `  # 2,000 pods, 50 changes per second, for 30 seconds
  tidings demo

  # as large and as busy as you like, until Ctrl-C
  tidings demo --pods 20000 --churn 500 --for 0

  # what informers do when connections break, and more
  tidings demo --faults

  # controllers in three processes, one of which you may kill
  tidings demo --replicas 3

  # the same cluster again, with the same users
  tidings demo --seed 42

  # a cluster to experiment with, for kubectl in another terminal
  tidings demo --churn 20 --for 0 --write-kubeconfig demo.kubeconfig`

func newDemo(c *common) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Show changes in a simulated, busy cluster",
		Long:  demoHelp, Example: demoExamples,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			isGiven := cmd.Flags().Changed
			if !isGiven("seed") {
				o.seed = uint64(rand.Uint32())
			}
			o.isDivided = isGiven("replicas")
			switch {
			case isGiven("for"):
			case o.faults:
				o.length = faultsLength
			case o.isDivided:
				o.length = 0
			}
			if err := o.check(); err != nil {
				return err
			}
			return runDemo(cmd.Context(), c, o)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *demoOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.pods, "pods", 2000, "the number of pods; the other objects are in proportion")
	flags.Float64Var(&o.churn, "churn", 50,
		"about how many changes there are per second; 0 for none except reactions to yours")
	flags.BoolVar(&o.faults, "faults", false,
		"every few seconds, something goes wrong; print what it cost the informers")
	flags.IntVar(&o.replicas, "replicas", 0,
		"run the controllers in so many processes, which divide the namespaces among them")
	flags.DurationVar(&o.length, "for", demoLength,
		"how long to run; 0 until Ctrl-C; "+format.Short(faultsLength)+
			" by default with --faults, 0 with --replicas")
	flags.Uint64Var(&o.seed, "seed", 0,
		"the number that decides the objects, and what users do (default random; it is printed)")
	flags.StringVar(&o.page, "page", anyPort,
		"the address of the page that shows the informers and controllers; port 0 means a free one")
	addServer(cmd, &o.listen, &o.kubeconfig)
}

func (o demoOptions) check() error {
	switch {
	case o.pods < 1 || o.pods > maxDemoPods:
		return problem.Usage("--pods %d: choose a number from 1 to %d", o.pods, maxDemoPods)
	case !(o.churn >= 0 && o.churn <= maxDemoChurn):
		return problem.Usage("--churn %s: choose a number from 0 to %d",
			strconv.FormatFloat(o.churn, 'f', -1, 64), maxDemoChurn)
	case o.faults && o.churn == 0:
		return problem.Usage("--faults needs changes: choose a --churn above 0")
	case o.isDivided && (o.replicas < minReplicas || o.replicas > maxReplicas):
		return problem.Usage("--replicas %d: choose a number from %d to %d, or leave it out to run the "+
			"controllers in this process", o.replicas, minReplicas, maxReplicas)
	case o.isDivided && o.faults:
		return problem.Usage("--replicas and --faults do not go together: choose one")
	case o.length < 0:
		return problem.Usage("--for %v is negative: 0 means until Ctrl-C", o.length)
	}
	return nil
}
