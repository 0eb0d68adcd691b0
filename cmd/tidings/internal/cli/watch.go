package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/resolve"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// watchOptions are the flags of `tidings watch`.
type watchOptions struct {
	names         []string // of types
	allNamespaces bool
	labels        string
	fields        string
	output        string
	events        bool
	initial       bool
	showSecrets   bool
}

const watchExample = `  # the pods and deployments of the context's namespace
  tidings watch pods,deployments

  # the pods of an application in all namespaces, only what changes from now on
  tidings watch pods -A -l app=web --initial=false

  # one object
  tidings watch configmaps -n shop --field-selector metadata.name=settings

  # custom resources, by any of their names
  tidings watch certificates.cert-manager.io -A

  # a stream of JSON for other programs: what happened to which object
  tidings watch pods -o json --output-watch-events | jq -r '.type + " " + .object.metadata.name'`

func newWatch(c *common) *cobra.Command {
	var o watchOptions
	clusterFlags := newClusterFlags()
	cmd := &cobra.Command{
		Use:   "watch TYPE[,TYPE…] [flags]",
		Short: "Show what happens to the objects of a cluster",
		Long: `Watch lists the objects of one or several types, then shows every change with the fields
that differ, until Ctrl-C. Types are named as for kubectl: plural, singular, short name or kind,
with the group after a dot where it is needed.

The data of Secrets is never printed unless --show-secrets is given.`,
		Example: watchExample,
		Args: func(cmd *cobra.Command, args []string) error {
			return o.takeTypes(cmd.CommandPath(), args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.CommandPath()); err != nil {
				return err
			}
			return runWatch(cmd, c, o, clusterFlags)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	clusterSet := pflag.NewFlagSet("cluster", pflag.ContinueOnError)
	clusterFlags.Namespace = nil // it has a place and a text of its own
	clusterFlags.AddFlags(clusterSet)
	clusterFlags.Namespace = new("")
	flags.StringVarP(clusterFlags.Namespace, "namespace", "n", "", "watch this namespace instead of the context's")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "watch all namespaces")
	flags.StringVarP(&o.labels, "selector", "l", "", "watch only objects with these labels, as in app=web,tier!=cache")
	flags.StringVar(&o.fields, "field-selector", "", "watch only objects with these fields, as in metadata.name=web")
	flags.BoolVar(&o.initial, "initial", true, "show the objects that exist already")
	flags.StringVarP(&o.output, "output", "o", "", "print objects as name, json or yaml instead of what changed")
	flags.BoolVar(&o.events, "output-watch-events", false, "with -o json or yaml, say with each object what happened to it")
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "print the data of Secrets")
	flags.AddFlagSet(clusterSet)
	cmd.SetUsageFunc(usageWith("Which cluster, as for kubectl", clusterSet))
	return cmd
}

// takeTypes reads the arguments.
func (o *watchOptions) takeTypes(command string, args []string) error {
	switch {
	case len(args) == 0:
		return problem.Usage(command, "name a type to watch, as in `tidings watch pods` or `tidings watch pods,deployments`")
	case strings.Contains(args[0], "/"):
		kind, name, _ := strings.Cut(args[0], "/")
		return problem.Usage(command, "%q names one object: use `tidings watch %s --field-selector metadata.name=%s`", args[0], kind, name)
	case len(args) > 1:
		return problem.Usage(command, "types are separated by commas, as in `tidings watch %s`; for one object add --field-selector metadata.name=%s", strings.Join(args, ","), args[1])
	}
	o.names = slices.DeleteFunc(strings.Split(args[0], ","), func(name string) bool { return name == "" })
	if len(o.names) == 0 {
		return problem.Usage(command, "%q names no type", args[0])
	}
	return nil
}

// check refuses flags that cannot be, before the cluster is asked.
func (o *watchOptions) check(command string) error {
	if _, err := labels.Parse(o.labels); err != nil {
		return problem.Usage(command, "--selector %q: %v", o.labels, err)
	}
	if _, err := fields.ParseSelector(o.fields); err != nil {
		return problem.Usage(command, "--field-selector %q: %v", o.fields, err)
	}
	if o.output != "" && !view.IsFormat(o.output) {
		return problem.Usage(command, "--output %q: choose name, json or yaml, or leave it out to see what changed", o.output)
	}
	if o.events && o.output != "json" && o.output != "yaml" {
		return problem.Usage(command, "--output-watch-events needs -o json or -o yaml")
	}
	return nil
}

// connectNote is after how long a command says that it is still connecting.
const connectNote = time.Second

func runWatch(cmd *cobra.Command, c *common, o watchOptions, flags *genericclioptions.ConfigFlags) error {
	ctx := cmd.Context()
	screen := c.screen(cmd)
	cluster, err := open(ctx, flags)
	if err != nil {
		return err
	}
	connecting := time.AfterFunc(connectNote, func() {
		screen.Note(screen.NotePalette().Dim("asking " + cluster.config.Host + " for its types …"))
	})
	types, err := cluster.types(o.names)
	connecting.Stop()
	if ctx.Err() != nil {
		return nil // Ctrl-C while connecting
	}
	if err != nil {
		return err
	}
	namespace, err := chooseNamespace(cmd, cluster, o, types)
	if err != nil {
		return err
	}
	w, err := newWatcher(cluster, c, screen, o, types, namespace)
	if err != nil {
		return err
	}
	return w.run(ctx)
}

// chooseNamespace returns the namespace to watch, "" for all. A namespace for types
// that have none is a mistake in the command line.
func chooseNamespace(cmd *cobra.Command, cluster *cluster, o watchOptions, types []resolve.Type) (string, error) {
	namespace, explicit, err := cluster.namespace()
	if err != nil {
		return "", err
	}
	namespaced := slices.ContainsFunc(types, func(t resolve.Type) bool { return t.Namespaced })
	if explicit && !namespaced {
		return "", problem.Usage(cmd.CommandPath(), "%s have no namespace: leave out --namespace", types[0].Resource.Resource)
	}
	if o.allNamespaces {
		return "", nil
	}
	return namespace, nil
}
