package cli

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/until"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// watchOptions are the flags of `tidings watch`.
type watchOptions struct {
	queries       []query
	allNamespaces bool
	labels        string
	fields        string
	until         string
	timeout       time.Duration
	output        string
	events        bool
	initial       bool
	showSecrets   bool

	condition *until.Condition // that until says, nil if it says none
}

const watchExample = `  # the pods and deployments of the context's namespace
  tidings watch pods,deployments

  # the pods of an application in all namespaces, only what changes from now on
  tidings watch pods -A -l app=web --initial=false

  # one object, or several
  tidings watch deployment/web configmap/settings -n shop

  # custom resources by any of their names, in a version of theirs if need be
  tidings watch certificates.v1.cert-manager.io -A

  # two clusters side by side
  tidings watch nodes --context staging,production

  # in a script: until every pod is ready, and no longer than two minutes
  tidings watch pods -n shop -l app=web --until condition=Ready --timeout 2m

  # a stream of JSON for other programs: what happened to which object
  tidings watch pods -o json --output-watch-events | jq -r '.type + " " + .object.metadata.name'`

const watchLong = `Watch lists the objects of one or several types, then shows every change with the fields
that differ, until Ctrl-C. Types are named as for kubectl: plural, singular, short name or kind,
with the group, or version and group, after dots where they are needed. After a type, names choose
objects: TYPE NAME or TYPE/NAME.

With --until, watch ends with exit code 0 as soon as every object that it follows is what the
expression says, and there is at least one of each type or name. The forms are those of
"kubectl wait --for":
  condition=TYPE[=STATUS]       the condition has that status; True if none is given
  jsonpath=EXPRESSION[=VALUE]   every value found is VALUE; without it, there is one
  create, delete                there is an object; there is none
What does not exist yet is waited for. When --timeout is over, or at Ctrl-C, the exit code is 1.

The data of Secrets is never printed unless --show-secrets is given.`

func newWatch(c *common) *cobra.Command {
	var o watchOptions
	clusters := newClusterFlags()
	cmd := &cobra.Command{
		Use:     "watch TYPE[,TYPE…] [NAME…] [flags]",
		Short:   "Show what happens to the objects of a cluster, or wait for something",
		Long:    watchLong,
		Example: watchExample,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			o.queries, err = parseQueries(cmd.CommandPath(), args)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.CommandPath()); err != nil {
				return err
			}
			if err := clusters.check(cmd.CommandPath()); err != nil {
				return err
			}
			return runWatch(cmd, c, o, clusters)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	clusters.namespaceVar(flags, "watch this namespace instead of the context's")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "watch all namespaces")
	flags.StringVarP(&o.labels, "selector", "l", "", "watch only objects with these labels, as in app=web,tier!=cache")
	flags.StringVar(&o.fields, "field-selector", "", "watch only objects with these fields, as in spec.nodeName=node-1")
	flags.BoolVar(&o.initial, "initial", true, "show the objects that exist already")
	flags.StringVar(&o.until, "until", "", "end when all objects are so: condition=TYPE[=STATUS], jsonpath=EXPRESSION[=VALUE], create or delete")
	flags.DurationVar(&o.timeout, "timeout", 0, "end after this time, as in 30s or 5m; 0 is never")
	flags.StringVarP(&o.output, "output", "o", "", "print objects as name, json or yaml instead of what changed")
	flags.BoolVar(&o.events, "output-watch-events", false, "with -o json or yaml, say with each object what happened to it")
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "print the data of Secrets")
	flags.AddFlagSet(clusters.set)
	(&completer{clusters, &o.allNamespaces}).install(cmd)
	complete(cmd, "output", "name", "json", "yaml")
	completeBy(cmd, "until", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"condition=", "jsonpath=", "create", "delete"}, completeOnly | cobra.ShellCompDirectiveNoSpace
	})
	cmd.SetUsageFunc(usageWith("Which cluster, as for kubectl", clusters.set))
	return cmd
}

// check refuses flags that cannot be, before the cluster is asked.
func (o *watchOptions) check(command string) error {
	if _, err := labels.Parse(o.labels); err != nil {
		return problem.Usage(command, "--selector %q: %v", o.labels, err)
	}
	if _, err := fields.ParseSelector(o.fields); err != nil {
		return problem.Usage(command, "--field-selector %q: %v", o.fields, err)
	}
	if name := o.queries[0].name; name != "" && (o.labels != "" || o.fields != "") {
		return problem.Usage(command, "the name %q and a selector exclude each other: leave one out", name)
	}
	if o.output != "" && !view.IsFormat(o.output) {
		return problem.Usage(command, "--output %q: choose name, json or yaml, or leave it out to see what changed", o.output)
	}
	if o.events && o.output != "json" && o.output != "yaml" {
		return problem.Usage(command, "--output-watch-events needs -o json or -o yaml")
	}
	if o.timeout < 0 {
		return problem.Usage(command, "--timeout %v is negative: 0 goes on until Ctrl-C", o.timeout)
	}
	if o.until == "" {
		return nil
	}
	condition, err := until.Parse(o.until)
	if err != nil {
		return problem.Usage(command, "--until %w", err)
	}
	o.condition = &condition
	return nil
}

// connectNote is after how long a command says that it is still connecting.
const connectNote = time.Second

func runWatch(cmd *cobra.Command, c *common, o watchOptions, clusters *clusterFlags) error {
	ctx := cmd.Context()
	screen := c.screen(cmd)
	sites, err := openSites(ctx, clusters.each())
	if err != nil {
		return err
	}
	types, err := resolveAll(sites, o.queries, screen)
	if ctx.Err() != nil {
		return o.interrupted() // Ctrl-C while connecting
	}
	if err != nil {
		return err
	}
	secrecy := view.Secrecy{Show: o.showSecrets}
	for i, s := range sites {
		if err := s.choose(cmd.CommandPath(), o.allNamespaces, types[i]); err != nil {
			return err
		}
		if err := s.follow(o.queries, types[i], o, tidings.FactoryOptions{Logger: c.logger(screen, secrecy)}); err != nil {
			return err
		}
	}
	w, err := newWatcher(screen, o, secrecy, sites)
	if err != nil {
		return err
	}
	return w.run(ctx)
}
