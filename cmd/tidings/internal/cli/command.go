package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// Streams are what a command reads and writes.
type Streams struct {
	// In, Out and Err are the standard streams.
	In       io.Reader
	Out, Err io.Writer
	// Getenv reads the environment; nil is an empty one.
	Getenv func(string) string
}

// Run runs a command line until it is done or ctx ends, and returns the code to exit
// with.
func Run(ctx context.Context, args []string, s Streams) int {
	if s.Getenv == nil {
		s.Getenv = func(string) string { return "" }
	}
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, syscall.EPIPE) { // nobody asks why there is no more for a reader that went away
		fmt.Fprintln(s.Err, view.Clean(problem.Message(err), false)) //nolint:errcheck // there is nowhere else to say it
	}
	return problem.Code(err)
}

// common are the flags that every command has.
type common struct {
	streams Streams
	verbose bool
	colours string
}

func newRoot(s Streams) *cobra.Command {
	c := &common{streams: s}
	root := &cobra.Command{
		Use:   "tidings",
		Short: "Show what happens to the objects of a Kubernetes cluster",
		Long: `Tidings keeps an indexed copy of Kubernetes objects in step with the API server and
shows every change as it happens, with the fields that changed.`,
		Example: `  # a made-up cluster, busy for 30 seconds; nothing needs to be installed
  tidings demo

  # what happens to the pods and deployments of the current kubeconfig's namespace
  tidings watch pods,deployments

  # an API server with the objects of a directory, for tests
  tidings serve --load manifests`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,

		SuggestionsMinimumDistance: 3,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().BoolVarP(&c.verbose, "verbose", "v", false, "log what happens underneath, on the error stream")
	root.PersistentFlags().StringVar(&c.colours, "color", view.ColoursAuto, "whether to colour: auto is on a terminal unless NO_COLOR is set; always, never")
	complete(root, "color", view.ColoursAuto, view.ColoursAlways, view.ColoursNever)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if view.IsColours(c.colours) {
			return nil
		}
		return problem.Usage(cmd.CommandPath(), "--color %q: choose auto, always or never", c.colours)
	}
	root.SetFlagErrorFunc(flagMistake)
	root.SetHelpCommand(newHelp())
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newDemo(c), newWatch(c), newServe(c), newCompletion(), newVersion())
	return root
}

// noSuchCommand accepts no arguments and offers commands with a name like the one
// that was typed.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "the commands are " + strings.Join(commandNames(cmd), ", ")
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return problem.Usage(cmd.CommandPath(), "there is no command %q: %s", args[0], hint)
}

// noArguments accepts none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return problem.Usage(cmd.CommandPath(), "%s takes no arguments, only flags: %q", cmd.CommandPath(), args[0])
}

// screen returns the screen of a command.
func (c *common) screen(cmd *cobra.Command) *view.Screen {
	out, err := cmd.OutOrStdout(), cmd.ErrOrStderr()
	return view.NewScreen(out, err, view.Detect(out, err, c.colours, c.streams.Getenv))
}

// logger returns the logger of a command, which shares the screen. What secrecy
// hides stays hidden there too.
func (c *common) logger(screen *view.Screen, secrecy view.Secrecy) *slog.Logger {
	if !c.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(screen.Log(), &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if err, ok := attr.Value.Any().(error); ok {
				attr.Value = slog.StringValue(secrecy.Error(err).Error())
			}
			return attr
		},
	}))
}

// usageWith returns a usage function that lists the flags of set apart from the
// command's own.
func usageWith(title string, set *pflag.FlagSet) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
		own.SortFlags = false
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if set.Lookup(flag.Name) == nil {
				own.AddFlag(flag)
			}
		})
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s\n%s:\n%s",
			cmd.UseLine(), cmd.Example, own.FlagUsages(), title, set.FlagUsages())
		return err
	}
}
