package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

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
	quiet         bool
	showSecrets   bool

	condition *until.Condition // of until, nil for none
}

const watchExample = `  # the pods and deployments of the context's namespace
  tidings watch pods,deployments

  # the pods of an application in all namespaces, only changes from now on
  tidings watch pods -A -l app=web --initial=false

  # one object, or several
  tidings watch deployment/web configmap/settings -n shop

  # custom resources by any of their names, with the version if necessary
  tidings watch certificates.v1.cert-manager.io -A

  # two clusters side by side
  tidings watch nodes --context staging,production

  # several namespaces
  tidings watch pods -n shop,checkout

  # in a script: until every pod is ready, at most two minutes
  tidings watch pods -n shop -l app=web --until condition=Ready --timeout 2m
  tidings watch deployment/web -q --until 'jsonpath={.status.readyReplicas}>=3'

  # a stream of JSON for other programs: each change with its object
  tidings watch pods -o json --output-watch-events | jq -r '.type + " " + .object.metadata.name'`

const watchLong = `Watch lists the objects of one or several types, then shows every change with the fields
that differ, until Ctrl-C. Types are named as for kubectl: plural, singular, short name or kind,
followed by .group or .version.group if necessary. Names after a type select objects:
TYPE NAME or TYPE/NAME.

With --until, watch ends with exit code 0 as soon as there is at least one object of each type or
name, and every object meets the condition. The conditions are those of "kubectl wait --for":
  condition=TYPE[=STATUS]       the condition has that status; True by default
  jsonpath=EXPRESSION[=VALUE]   every value found is VALUE; without VALUE, there is a value;
                                ==, !=, >=, <=, > and < compare numbers and quantities
  create, delete                there is an object; there is none
Watch waits for objects that do not exist yet. The exit code is 1 after --timeout or Ctrl-C.

A type that the credentials may not watch is named on the error stream, and the others are watched;
with --until, or if there is no other, it is an error.

The data of Secrets is never printed unless --show-secrets is given.`

func newWatch(c *common) *cobra.Command {
	var o watchOptions
	clusters := newClusterFlags()
	cmd := &cobra.Command{
		Use:     "watch TYPE[,TYPE…] [NAME…] [flags]",
		Short:   "Show changes of the objects of a cluster, or wait for a condition",
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
		ValidArgsFunction: clusters.completeTypes,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	o.addSelection(flags, clusters, "watch")
	flags.BoolVarP(&o.quiet, "quiet", "q", false,
		"print objects and changes only: no notes, status line or summary")
	flags.BoolVar(&o.initial, "initial", true, "show the objects that exist at the start")
	flags.StringVar(&o.until, "until", "", "end when all objects meet a condition: "+
		"condition=TYPE[=STATUS], jsonpath=EXPRESSION[=VALUE] (or ==, !=, >=, <=, >, <), "+
		"create or delete")
	flags.DurationVar(&o.timeout, "timeout", 0,
		"end after this time, as in 30s or 5m; 0 means never")
	flags.StringVarP(&o.output, "output", "o", "",
		"print whole objects, as name, json or yaml, instead of the differences")
	flags.BoolVar(&o.events, "output-watch-events", false,
		"with -o json or yaml, print each object in a watch event")
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "print the data of Secrets")
	flags.AddFlagSet(clusters.set)
	complete(cmd, "context", clusters.completeContexts)
	complete(cmd, "output", cobra.FixedCompletions([]string{"name", "json", "yaml"},
		cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "until", cobra.FixedCompletions([]string{"condition=", "jsonpath=", "create", "delete"},
		cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	cmd.SetUsageFunc(usageWith("Flags for the cluster, as for kubectl", clusters.set))
	return cmd
}

// usageWith returns a usage function that lists the flags of set after the other flags.
func usageWith(title string, set *pflag.FlagSet) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
		own.SortFlags = false
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if set.Lookup(flag.Name) == nil {
				own.AddFlag(flag)
			}
		})
		_, err := fmt.Fprintf(cmd.OutOrStderr(),
			"Usage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s\n%s:\n%s",
			cmd.UseLine(), cmd.Example, own.FlagUsages(), title, set.FlagUsages())
		return err
	}
}

// completeTimeout bounds how long completion waits for a cluster.
const completeTimeout = 3 * time.Second

// completeTypes completes the names of types, also after a comma. It completes nothing if the
// cluster does not answer.
func (f *clusterFlags) completeTypes(
	cmd *cobra.Command, args []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	c, err := open(ctx, f.each()[0])
	if err != nil || len(args) > 0 {
		return nil, none
	}
	discovery, err := c.flags.ToDiscoveryClient()
	if err != nil {
		return nil, none
	}
	lists, _ := discovery.ServerPreferredResources() // a part of the groups may not answer
	last := strings.LastIndex(typed, ",") + 1
	names := slices.DeleteFunc(typeNames(lists),
		func(name string) bool { return !strings.HasPrefix(name, typed[last:]) })
	for i := range names {
		names[i] = typed[:last] + names[i]
	}
	return names, none
}

// addSelection adds the flags that choose objects. verb is what the command does with them.
func (o *watchOptions) addSelection(flags *pflag.FlagSet, clusters *clusterFlags, verb string) {
	flags.StringSliceVarP(&clusters.namespaces, "namespace", "n", nil,
		verb+" this namespace, or several separated by commas, instead of the context's")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, verb+" all namespaces")
	flags.StringVarP(&o.labels, "selector", "l", "",
		verb+" only objects with these labels, as in app=web,tier!=cache")
	flags.StringVar(&o.fields, "field-selector", "",
		verb+" only objects with these fields, as in spec.nodeName=node-1")
}

// check returns an error for invalid flags, before the cluster is asked.
func (o *watchOptions) check(command string) error {
	if _, err := labels.Parse(o.labels); err != nil {
		return problem.Usage(command, "--selector %q: %v", o.labels, err)
	}
	if _, err := fields.ParseSelector(o.fields); err != nil {
		return problem.Usage(command, "--field-selector %q: %v", o.fields, err)
	}
	if name := o.queries[0].name; name != "" && (o.labels != "" || o.fields != "") {
		return problem.Usage(command, "the name %q and a selector exclude each other: "+
			"leave one out", name)
	}
	if o.output != "" && !view.IsFormat(o.output) {
		return problem.Usage(command, "--output %q: choose name, json or yaml, or leave it out to "+
			"see the differences", o.output)
	}
	if o.events && o.output != "json" && o.output != "yaml" {
		return problem.Usage(command, "--output-watch-events needs -o json or -o yaml")
	}
	if o.timeout < 0 {
		return problem.Usage(command, "--timeout %v is negative: 0 means until Ctrl-C", o.timeout)
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
