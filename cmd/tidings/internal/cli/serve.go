package cli

import (
	"github.com/spf13/cobra"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// serveOptions are the flags of `tidings serve`.
type serveOptions struct {
	listen     string
	load       []string
	kubeconfig string
	seed       uint64
}

func newServe(c *common) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run a small API server, for tests and for trying things out",
		Long: `Serve runs an API server that keeps objects in memory and does what controllers and kubectl use
to list, watch and write: all built-in types, and those of CustomResourceDefinitions. There are no
controllers, no admission and no validation against schemas: pods stay as they are written, and
"kubectl apply" needs --validate=false.

The server's address is printed, and a kubeconfig is written when the server is ready. Whoever can
reach the address may do everything, without credentials.

Nothing needs to be installed. Ctrl-C ends the server.`,
		Example: `  # an empty cluster, for kubectl in another terminal
  tidings serve

  # with the objects of a directory, at an address of your choice; -v logs every request
  tidings serve --load manifests --listen 127.0.0.1:8080 -v

  # with what a real cluster holds
  kubectl get deployments,pods -A -o yaml | tidings serve --load -

  # in a script: the kubeconfig is there when the server is ready
  tidings serve --write-kubeconfig test.kubeconfig &`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.CommandPath()); err != nil {
				return err
			}
			return runServe(cmd, c, o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.listen, "listen", anyPort, "the address on which the API server listens; port 0 takes a free one")
	flags.StringArrayVar(&o.load, "load", nil, "begin with the objects of this file, or of all .yaml, .yml and .json files below this directory; - is the standard input; may be repeated")
	flags.Uint64Var(&o.seed, "seed", 0, "the number that decides UIDs and generated names, for runs that are to repeat (default a random one)")
	flags.StringVar(&o.kubeconfig, "write-kubeconfig", "", "write a kubeconfig of the server to this file (default a temporary one, which is printed)")
	return cmd
}

// check refuses flags that cannot be.
func (o serveOptions) check(command string) error {
	inputs := 0
	for _, name := range o.load {
		switch name {
		case "":
			return problem.Usage(command, "--load names nothing: name a file or a directory, or - for the standard input")
		case standardInput:
			inputs++
		}
	}
	if inputs > 1 {
		return problem.Usage(command, "--load - is there twice: the standard input can be read once")
	}
	return nil
}
