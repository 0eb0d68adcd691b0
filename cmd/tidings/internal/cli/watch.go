package cli

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/until"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// choice is the selection of the objects of watch and record.
type choice struct {
	queries       []query
	allNamespaces bool
	labels        string
	fields        string
	quiet         bool
}

type watchOptions struct {
	choice
	until       string
	timeout     time.Duration
	output      string
	events      bool
	initial     bool
	showSecrets bool

	condition *until.Condition // parsed from until, nil without it
}

const watchExample = `  # the pods and deployments of the context's namespace
  tidings watch pods,deployments

  # the pods of an application in all namespaces, only changes from now on
  tidings watch pods -A -l app=web --initial=false

  # one object, or several
  tidings watch deployment/web configmap/settings -n shop

  # custom resources by any of their names, with the version if necessary
  tidings watch certificates.v1.cert-manager.io -A

  # two clusters side by side, or several namespaces
  tidings watch nodes --context staging,production
  tidings watch pods -n shop,checkout

  # in a script: until every pod is ready, at most two minutes
  tidings watch pods -n shop -l app=web --until condition=Ready --timeout 2m
  tidings watch deployment/web -q --until 'jsonpath={.status.readyReplicas}=3'

  # a stream of JSON for other programs: each change with its object
  tidings watch pods -o json --output-watch-events | jq -r '.type + " " + .object.metadata.name'`

const watchLong = `Watch lists the objects of one or several types, then shows every change with the fields
that differ, until Ctrl-C. Types are named as for kubectl: plural, singular, short name or kind,
followed by .group or .version.group if necessary. Names after a type select objects:
TYPE NAME or TYPE/NAME.

With --until, watch ends with exit code 0 as soon as there is at least one object of each type or
name, and every object meets the condition. The conditions are those of "kubectl wait --for":
  condition=TYPE[=STATUS]       the condition has that status; True by default
  jsonpath=EXPRESSION[=VALUE]   every value found is VALUE; without VALUE, there is a value
  create, delete                there is an object; there is none
Watch waits for objects that do not exist yet. The exit code is 1 after --timeout or Ctrl-C.

A type that the credentials may not watch is named on the error stream, and the others are watched;
with --until, or if there is no other, it is an error.

The data of Secrets is never printed unless --show-secrets is given.`

func newWatch(c *common) *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:     "watch TYPE[,TYPE…] [NAME…] [flags]",
		Short:   "Show changes of the objects of a cluster, or wait for a condition",
		Long:    watchLong,
		Example: watchExample,
	}
	clusters := o.addTo(cmd, "print objects and changes only: no notes, status line or summary")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if err := clusters.check(); err != nil {
			return err
		}
		return runWatch(cmd.Context(), c, o, clusters)
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.initial, "initial", true, "show the objects that exist at the start")
	flags.StringVar(&o.until, "until", "", "end when all objects meet a condition: "+
		"condition=TYPE[=STATUS], jsonpath=EXPRESSION[=VALUE], "+
		"create or delete")
	flags.DurationVar(&o.timeout, "timeout", 0, "end after this time, as in 30s or 5m; 0 means never")
	flags.StringVarP(&o.output, "output", "o", "",
		"print whole objects, as name, json or yaml, instead of the differences")
	flags.BoolVar(&o.events, "output-watch-events", false,
		"with -o json or yaml, print each object in a watch event")
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "print the data of Secrets")
	completeWords(cmd, "output", "name", "json", "yaml")
	complete(cmd, "until", cobra.FixedCompletions([]string{"condition=", "jsonpath=", "create", "delete"},
		cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	return cmd
}

// addTo adds the arguments and flags that select objects and clusters to a command.
func (o *choice) addTo(cmd *cobra.Command, quiet string) *clusterFlags {
	clusters, flags, verb := newClusterFlags(cmd, true), cmd.Flags(), cmd.Name()
	cmd.Args = func(_ *cobra.Command, args []string) (err error) {
		o.queries, err = parseQueries(verb, args)
		return err
	}
	cmd.ValidArgsFunction = clusters.completeTypes
	flags.StringSliceVarP(&clusters.namespaces, "namespace", "n", nil,
		verb+" this namespace, or several separated by commas, instead of the context's")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, verb+" all namespaces")
	flags.StringVarP(&o.labels, "selector", "l", "",
		verb+" only objects with these labels, as in app=web,tier!=cache")
	flags.StringVar(&o.fields, "field-selector", "",
		verb+" only objects with these fields, as in spec.nodeName=node-1")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, quiet)
	return clusters
}

// check returns an error for invalid flags, before a request to the cluster.
func (o *choice) check() error {
	if _, err := labels.Parse(o.labels); err != nil {
		return problem.Usage("--selector %q: %v", o.labels, err)
	}
	if _, err := fields.ParseSelector(o.fields); err != nil {
		return problem.Usage("--field-selector %q: %v", o.fields, err)
	}
	if name := o.queries[0].name; name != "" && o.labels+o.fields != "" {
		return problem.Usage("the name %q and a selector exclude each other: leave one out", name)
	}
	return nil
}

func (o *watchOptions) check() error {
	if err := o.choice.check(); err != nil {
		return err
	}
	switch {
	case o.output != "" && !view.IsFormat(o.output):
		return problem.Usage("--output %q: choose name, json or yaml, or leave it out to see the "+
			"differences", o.output)
	case o.events && o.output != "json" && o.output != "yaml":
		return problem.Usage("--output-watch-events needs -o json or -o yaml")
	case o.timeout < 0:
		return problem.Usage("--timeout %v is negative: 0 means until Ctrl-C", o.timeout)
	case o.until == "":
		return nil
	}
	condition, err := until.Parse(o.until)
	if err != nil {
		return problem.Usage("--until %w", err)
	}
	o.condition = &condition
	return nil
}
