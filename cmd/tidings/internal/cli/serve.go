package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// serveOptions are the flags of `tidings serve`.
type serveOptions struct {
	listen     string
	load       []string
	kubeconfig string
	seed       uint64
}

// standardInput is the name of the standard input for --load.
const standardInput = "-"

func newServe(c *common) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run a small API server, for tests and experiments",
		Long: `Serve runs an API server that keeps objects in memory and does what controllers and kubectl use
to list, watch and write: all built-in types, and those of CustomResourceDefinitions. There are no
controllers, no admission and no validation against schemas: pods stay as they are written, and
"kubectl apply" needs --validate=false.

It prints the server's address, and writes a kubeconfig when the server is ready. Everybody who
can reach the address may do everything, without credentials.

Nothing needs to be installed. Ctrl-C ends the server; it saves nothing.`,
		Example: `  # an empty cluster, for kubectl in another terminal
  tidings serve

  # with the objects of a directory, at an address of your choice; -v logs every request
  tidings serve --load manifests --listen 127.0.0.1:8080 -v

  # with the objects of a real cluster
  kubectl get deployments,pods -A -o yaml | tidings serve --load -

  # in a script: the kubeconfig exists when the server is ready
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
	flags.StringVar(&o.listen, "listen", anyPort,
		"the address of the API server; port 0 means a free one")
	flags.StringArrayVar(&o.load, "load", nil,
		"begin with the objects of this file, or of all .yaml, .yml and .json "+
			"files below this directory; - is the standard input; may be repeated")
	flags.Uint64Var(&o.seed, "seed", 0,
		"the number that decides UIDs and generated names (default random)")
	flags.StringVar(&o.kubeconfig, "write-kubeconfig", "",
		"write the kubeconfig of the server to this file "+
			"(default a temporary one, whose path is printed)")
	return cmd
}

// check returns an error for invalid flags.
func (o serveOptions) check(command string) error {
	inputs := 0
	for _, name := range o.load {
		switch name {
		case "":
			return problem.Usage(command, "--load is empty: name a file or a directory, or - for "+
				"the standard input")
		case standardInput:
			inputs++
		}
	}
	if inputs > 1 {
		return problem.Usage(command, "--load - is given twice: "+
			"the standard input can be read once")
	}
	return nil
}

// runServe serves until Ctrl-C.
func runServe(cmd *cobra.Command, c *common, o serveOptions) (err error) {
	ctx, screen := cmd.Context(), c.screen(cmd)
	s := new(server)
	s.Server, err = apisim.New(apisim.Options{
		Seed: o.seed, Middleware: onlyPrograms, Logger: c.logger(screen, view.Secrecy{}),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := checkKubeconfig(o.kubeconfig); err != nil {
		return err // before loading, which may take long
	}
	contents, err := s.load(ctx, o.load, c.streams.In)
	if ctx.Err() != nil {
		return nil // Ctrl-C while waiting for input
	}
	if err != nil {
		return err
	}
	if err := s.listen(o.listen, screen); err != nil {
		return err
	}
	if err := say(screen, "an API server at %s, with %s", s, contents); err != nil {
		return err
	}
	if err := s.publish(o.kubeconfig, metav1.NamespaceDefault, screen); err != nil {
		return err
	}
	if err := say(screen, "Ctrl-C ends it, and its objects are lost"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// load loads files, directories and the standard input, and describes what the server holds.
func (s *server) load(ctx context.Context, names []string, in io.Reader) (string, error) {
	if len(names) == 0 {
		return "no objects but the namespaces of every cluster", nil
	}
	before := s.Snapshot().Objects()
	files := slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return name == standardInput })
	err := s.Load(files...)
	if err == nil && len(files) < len(names) {
		input := make(chan error, 1)
		go func() { input <- s.LoadFrom("the standard input", in) }()
		select {
		case err = <-input:
		case <-ctx.Done(): // reading a terminal may never end
			return "", ctx.Err()
		}
	}
	if err != nil {
		return "", explainLoad(err)
	}
	return view.Counted(s.Snapshot().Objects()-before, "object", "objects") + " loaded", nil
}

// explainLoad says what to do about an error of --load.
func explainLoad(err error) error {
	hint := ""
	if !errors.As(err, new(apierrors.APIStatus)) {
		hint = ": name files of objects in YAML or JSON, as `kubectl get -o yaml` prints them, or " +
			"directories of such files"
	}
	if text, ok := strings.CutSuffix(err.Error(),
		": create its CustomResourceDefinition, or register it with Server.Register"); ok {
		return rewordServer("--load: ", ": load its CustomResourceDefinition, too",
			problem.Reworded(text, err))
	}
	return rewordServer("--load: ", hint, err)
}
