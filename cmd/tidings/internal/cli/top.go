package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/top"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

type topOptions struct {
	address  *url.URL // of the pages; nil for the pages of a pod
	of       query    // the object whose pod has the pages
	port     int
	path     string
	interval time.Duration
	once     bool
	output   string
}

const (
	// pagesPort is the port in the examples of package debug's documentation.
	pagesPort = 8085
	// defaultPages is the default address of the pages.
	defaultPages = "http://localhost:8085"
	// defaultInterval is the time between two refreshes.
	defaultInterval = time.Second
	// shortestInterval bounds the load of a process by refreshes.
	shortestInterval = 100 * time.Millisecond
)

const topLong = `Top shows which informers of a program are behind, which handlers are slow, which keys of its
controllers are stuck, and why. The program serves the pages of Tidings' package debug; top reads
them as JSON, from an address (` + defaultPages + ` by default),
or from a pod: TYPE/NAME names it, or a workload or service that selects it. For a pod, top forwards
a port as "kubectl port-forward" does: the credentials need the verb create on pods/portforward.

The first screen has the problems, others the informers, handlers, controllers, leases and groups of
shards. Enter shows details, g those of a key: who wrote its fields, and why it was reconciled.

With --once, top prints all tables, or with -o json the figures of the first page, and ends. The
exit code is 1 if the program does not answer, or if its answer is not one of package debug or has
another version.`

const topExample = `  # the demo: "tidings demo" prints the address of its page
  tidings demo --faults --for 0 --page 127.0.0.1:8085
  tidings top

  # a program that serves the pages below a path
  tidings top http://localhost:6060/debug/tidings/

  # an operator in a cluster
  tidings top deploy/my-operator -n ops --port 6060

  # in a script
  tidings top --once -o json | jq -r '.problems[].of'`

func newTop(c *common) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:     "top [ADDRESS | TYPE/NAME] [flags]",
		Short:   "Show what the informers and controllers of a program do",
		Long:    topLong,
		Example: topExample,
		Args:    func(_ *cobra.Command, args []string) error { return o.parse(args) },
	}
	clusters, flags := newClusterFlags(cmd, false), cmd.Flags()
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(flags); err != nil {
			return err
		}
		if err := clusters.check(); err != nil {
			return err
		}
		return runTop(cmd, c, o, clusters)
	}
	flags.BoolVar(&o.once, "once", false, "print the figures once, and end")
	addForm(cmd, &o.output, "what to print with --once: table or json")
	flags.DurationVar(&o.interval, "interval", defaultInterval, "the time between two refreshes")
	flags.StringVarP(&clusters.Context.Namespace, "namespace", "n", "",
		"the namespace of TYPE/NAME (default the context's)")
	flags.IntVar(&o.port, "port", pagesPort, "the port of the pod, for TYPE/NAME")
	flags.StringVar(&o.path, "path", "/", "the path of the first page, for TYPE/NAME")
	return cmd
}

// hostPort matches an address without a scheme.
var hostPort = regexp.MustCompile(`^[^/]*:[0-9]+(/.*)?$`)

func (o *topOptions) parse(args []string) error {
	arg := defaultPages
	switch {
	case len(args) > 1:
		return problem.Usage("%q: name one program", args[1])
	case len(args) == 1:
		arg = args[0]
	}
	if hostPort.MatchString(arg) {
		arg = "http://" + arg
	}
	if !strings.Contains(arg, "://") {
		if !strings.Contains(arg, "/") {
			return problem.Usage("%q is neither an address nor TYPE/NAME: write it as in %s or "+
				"deploy/my-operator", arg, defaultPages)
		}
		queries, err := parseQueries("top", []string{arg})
		if err == nil && len(queries) > 1 {
			err = problem.Usage("%q: name one program", arg)
		}
		if err == nil {
			o.of = queries[0]
		}
		return err
	}
	address, err := url.Parse(arg)
	if err != nil {
		return problem.Usage("the address cannot be read: %w", err)
	}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return problem.Usage("%q is no address of a page: write it as in %s", arg, defaultPages)
	}
	address.RawQuery, address.Fragment = "", ""
	o.address = address.JoinPath("/")
	return nil
}

func (o *topOptions) check(flags *pflag.FlagSet) error {
	if err := checkForm(o.output); err != nil {
		return err
	}
	switch {
	case flags.Changed("output") && !o.once:
		return problem.Usage("--output needs --once")
	case o.interval < shortestInterval:
		return problem.Usage("--interval %v: choose at least %v", o.interval, shortestInterval)
	case o.port < 1 || o.port > 65535:
		return problem.Usage("--port %d: choose a number from 1 to 65535", o.port)
	case !strings.HasPrefix(o.path, "/"):
		return problem.Usage("--path %q: begin it with /", o.path)
	}
	for _, name := range []string{"namespace", "port", "path"} {
		if o.address != nil && flags.Changed(name) {
			return problem.Usage("--%s is for TYPE/NAME: the address %s has all of it", name,
				o.address.Redacted())
		}
	}
	return nil
}

func runTop(cmd *cobra.Command, c *common, o topOptions, clusters *clusterFlags) error {
	screen := c.screen()
	if !o.once && !screen.Live() {
		return problem.Usage("the output is no terminal: add --once to print the figures once")
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	client, err := o.client(ctx, clusters)
	if err != nil {
		return err
	}
	if o.once {
		figures := client.Tables
		if o.output == "json" {
			figures = client.JSON
		}
		text, err := figures(ctx)
		if err != nil {
			return err
		}
		return screen.Print(text)
	}
	err = top.Run(ctx, client, c.topOptions(screen, o.interval))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// topOptions returns the options for the terminal of a command.
func (c *common) topOptions(screen *view.Screen, interval time.Duration) top.Options {
	options := top.Options{Out: c.streams.Out, Palette: screen.Palette(), Interval: interval}
	if in, ok := c.streams.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		options.In = in
	}
	return options
}

// client returns the client of the program's pages. Forwarding ends with ctx.
func (o *topOptions) client(ctx context.Context, clusters *clusterFlags) (*top.Client, error) {
	if o.address != nil {
		open := func(context.Context) (*url.URL, error) { return o.address, nil }
		return top.NewClient(o.address.Redacted(), open), nil
	}
	cluster, err := open(ctx, clusters.serverFlags)
	if err != nil {
		return nil, err
	}
	namespace, err := cluster.namespace()
	if err != nil {
		return nil, err
	}
	f := &forwarder{
		ctx: ctx, cluster: cluster, of: o.of, namespace: namespace, port: o.port,
		path: strings.TrimSuffix(o.path, "/") + "/",
	}
	name := fmt.Sprintf("%s/%s -n %s, port %d", o.of.kind, o.of.name, namespace, o.port)
	return top.NewClient(name, f.open), nil
}
