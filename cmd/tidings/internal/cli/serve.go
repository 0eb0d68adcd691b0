package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

type serveOptions struct {
	listen     string
	load       []string
	kubeconfig string
	seed       uint64
	users      []string
	command    []string // the command to run; without one, serve until Ctrl-C

	allUsers []apisim.User // parsed from users
}

// standardInput is the name for the standard input in --load.
const standardInput = "-"

const serveLong = `Serve runs an API server that keeps objects in memory and does what controllers and kubectl use
to list, watch and write: all built-in types, and those of CustomResourceDefinitions. There are no
controllers and no admission, and nothing is validated but the names of fields: pods stay as they are
written.

It prints the server's address, and writes a kubeconfig when the server is ready. Everybody who
can reach the address may do everything, without credentials, unless there are --users: then the
server uses TLS, requires their tokens, and allows what their rules say. The kubeconfig has a
context for each user, the first one being the current one, and the context "tidings" of a user who
may do everything.

With a command after --, serve runs it with KUBECONFIG set to that kubeconfig, and ends with its
exit status: 126 if it cannot be executed, 127 if it is not found, 128 and the signal's number if a
signal ended it. Serve itself prints nothing then but warnings, and passes signals on.

Nothing needs to be installed. Ctrl-C ends the server; it saves nothing.`

const serveExample = `  # an empty cluster, for kubectl in another terminal
  tidings serve

  # with the objects of a directory, at an address of your choice; -v logs every request
  tidings serve --load manifests --listen 127.0.0.1:8080 -v

  # with the objects of a real cluster
  kubectl get deployments,pods -A -o yaml | tidings serve --load -

  # with a user who may only read
  tidings serve --load manifests --users reader=get,list,watch:pods

  # for one command, whose exit status it returns
  tidings serve --load manifests -- tidings watch pod/web --until condition=Ready`

func newServe(c *common) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:     "serve [flags] [-- COMMAND [ARG…]]",
		Short:   "Run a small API server, for tests and experiments",
		Long:    serveLong,
		Example: serveExample,
		Args:    onlyCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.command = args
			if err := o.check(); err != nil {
				return err
			}
			return runServe(cmd, c, o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addServer(cmd, &o.listen, &o.kubeconfig)
	flags.StringArrayVar(&o.load, "load", nil,
		"begin with the objects of this file, or of all .yaml, .yml and .json "+
			"files below this directory; - is the standard input; may be repeated")
	flags.StringArrayVar(&o.users, "users", nil,
		"let only these users in: a file with a list of users in YAML, or one user as "+
			"NAME=VERBS:RESOURCES[:NAMESPACES], as in reader=get,list,watch:pods; may be repeated")
	flags.Uint64Var(&o.seed, "seed", 0,
		"the number that decides UIDs and generated names (default random)")
	return cmd
}

// onlyCommand accepts no arguments but a command after --.
func onlyCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0 && len(args) == 0:
		return nil
	case dash < 0:
		return problem.Usage("%s takes no arguments but a command after --, as in `%[1]s -- %s`",
			cmd.CommandPath(), strings.Join(args, " "))
	case dash > 0:
		return problem.Usage("%s takes no arguments before --: %q", cmd.CommandPath(), args[0])
	case len(args) == 0:
		return problem.Usage("there is no command after --: name one, as in `%s -- kubectl get pods -A`",
			cmd.CommandPath())
	}
	return nil
}

func (o *serveOptions) check() (err error) {
	inputs := 0
	for _, name := range o.load {
		if name == "" {
			return problem.Usage("--load is empty: name a file or a directory, or - for the standard input")
		}
		if name == standardInput {
			inputs++
		}
	}
	if inputs > 1 {
		return problem.Usage("--load - is given twice: the standard input can be read once")
	}
	o.allUsers, err = readUsers(o.users)
	return err
}

// runServe serves until Ctrl-C, or until the command has ended.
func runServe(cmd *cobra.Command, c *common, o serveOptions) (err error) {
	ctx, screen := cmd.Context(), c.screen()
	s := &server{users: o.allUsers}
	s.Server, err = apisim.New(apisim.Options{
		Seed: o.seed, Middleware: onlyPrograms, Logger: c.logger(screen, view.Secrecy{}),
	})
	if err != nil {
		return err
	}
	defer func() {
		if closing := s.close(); closing != nil { // a StatusError is not joined
			err = errors.Join(err, closing)
		}
	}()
	if err := checkKubeconfig(o.kubeconfig); err != nil {
		return err // before the load, which may take long
	}
	if err := checkAddress(o.listen, cannotListen); err != nil {
		return err
	}
	if len(o.command) > 0 {
		if _, err := exec.LookPath(o.command[0]); err != nil {
			return cannotStart(o.command[0], err)
		}
	}
	contents, err := s.load(ctx, o.load, c.streams.In, screen)
	if ctx.Err() != nil {
		return o.interrupted() // Ctrl-C while waiting for input
	}
	if err != nil {
		return err
	}
	if err := s.restrict(o); err != nil {
		return err
	}
	if err := s.listen(o.listen, screen); err != nil {
		return err
	}
	if len(o.command) > 0 {
		if err := s.writeKubeconfig(o.kubeconfig, metav1.NamespaceDefault); err != nil {
			return err
		}
		return runCommand(ctx, o, s.kubeconfig, c.streams)
	}
	err = say(screen, "an API server at %s, with %s", s, contents)
	if err == nil {
		err = s.publish(o.kubeconfig, metav1.NamespaceDefault, screen)
	}
	if err == nil {
		err = s.sayUsers(screen)
	}
	if err == nil {
		err = say(screen, "Ctrl-C ends it, and its objects are lost")
	}
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// restrict adds the users. It follows the load, which they must not affect.
func (s *server) restrict(o serveOptions) error {
	if err := s.SetUsers(o.allUsers...); err != nil {
		return rewordServer("--users: ", "", err)
	}
	return nil
}

func (s *server) sayUsers(screen *view.Screen) error {
	if len(s.users) == 0 {
		return nil
	}
	var names []string
	for _, user := range s.users[:len(s.users)-1] {
		names = append(names, view.Printable(user.Name))
	}
	return say(screen, "it has the contexts %s, and %s, who may do everything",
		strings.Join(names, ", "), kubeconfigName)
}

// interrupted returns the error of Ctrl-C before the server was ready: nil without a command to
// run.
func (o serveOptions) interrupted() error {
	if len(o.command) == 0 {
		return nil
	}
	return fmt.Errorf("interrupted before %s was started", o.command[0])
}
