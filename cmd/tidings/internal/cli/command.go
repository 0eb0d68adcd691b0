package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// Streams are the streams and the environment of a command.
type Streams struct {
	// In, Out and Err are the standard streams.
	In       io.Reader
	Out, Err io.Writer
	// Plugin reports whether kubectl runs the command, as `kubectl tidings`. Help and errors then
	// use that name.
	Plugin bool
	// Getenv reads the environment; nil means an empty environment.
	Getenv func(string) string
}

// Run runs a command line until it is done or ctx ends, and returns the exit code.
func Run(ctx context.Context, args []string, s Streams) int {
	if s.Getenv == nil {
		s.Getenv = func(string) string { return "" }
	}
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if isReaderGone(err) {
		return problem.CodeOK // for example head, after its last line
	}
	// The command of `tidings serve` has printed a message of its own.
	status, ok := err.(*problem.StatusError) // an error joined with another one needs a message
	if err != nil && !(ok && status.Err == nil) {
		if cmd.Hidden {
			cmd = root // help and replica are hidden
		}
		message := view.Clean(s.named(problem.Message(err, cmd.CommandPath())), false)
		fmt.Fprintln(s.Err, message) //nolint:errcheck // there is no other stream for it
	}
	return problem.Code(err)
}

// isReaderGone reports whether the reader of the standard output has closed it. A connection to a
// server fails with the same errno, but not with a PathError.
func isReaderGone(err error) bool {
	failed, ok := errors.AsType[*fs.PathError](err)
	return ok && errors.Is(failed, syscall.EPIPE)
}

// common has the flags of all commands.
type common struct {
	streams Streams
	verbose bool
	colours string
}

func newRoot(s Streams) *cobra.Command {
	c := &common{streams: s}
	root := &cobra.Command{
		Use:   "tidings",
		Short: "Show changes of the objects of a Kubernetes cluster",
		Long: `Tidings keeps an indexed copy of Kubernetes objects in step with the API server and
shows every change as it happens, with the fields that changed.`,
		Example: `  # a simulated, busy cluster, for 30 seconds; nothing needs to be installed
  tidings demo

  # the pods and deployments of the current kubeconfig's namespace
  tidings watch pods,deployments

  # what the informers and controllers of a program do
  tidings top http://localhost:8085

  # an API server with the objects of a directory, for tests
  tidings serve --load manifests`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,

		SuggestionsMinimumDistance: maxTypos,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.BoolVarP(&c.verbose, "verbose", "v", false, "log details on the error stream")
	flags.StringVar(&c.colours, "color", view.ColoursAuto,
		"when to colour the output: auto is on a terminal unless NO_COLOR is set; always, never")
	words := []string{view.ColoursAuto, view.ColoursAlways, view.ColoursNever}
	completeWords(root, "color", words...)
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if slices.Contains(words, c.colours) {
			return nil
		}
		return problem.Usage("--color %q: choose auto, always or never", c.colours)
	}
	root.SetFlagErrorFunc(explainFlag)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newDemo(c), newWatch(c), newServe(c), newTop(c), newRecord(c), newReplay(c),
		newShards(c), newVersion(), newReplica(c))
	root.CompletionOptions.DisableDefaultCmd = s.Plugin // kubectl has its own
	root.InitDefaultCompletionCmd()
	root.Example = s.named(root.Example)
	if s.Plugin {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginName}
	}
	for _, cmd := range root.Commands() {
		cmd.Long, cmd.Example = s.named(cmd.Long), s.named(cmd.Example)
		if cmd.Name() == "completion" {
			describeCompletion(cmd)
		}
	}
	return root
}

// describeCompletion gives cobra's command help texts in the style of the others.
func describeCompletion(cmd *cobra.Command) {
	cmd.Short, cmd.Args = "Print a completion script for a shell", noSuchCommand
	cmd.Long = "Completion prints a script with which a shell completes commands, flags, " +
		"types and contexts."
	cmd.Example = "  # in bash, until this shell ends\n  source <(tidings completion bash)"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return problem.Usage("name a shell: %s", strings.Join(commandNames(cmd), ", "))
	}
}

// pluginName is the name of the command as a plugin of kubectl.
const pluginName = "kubectl tidings"

// commandLine matches the beginning of a command line of this program.
var commandLine = regexp.MustCompile(
	`(?:kubectl )?tidings (watch|demo|serve|top|shards|record|replay|completion|version)\b`)

// named returns a text in which command lines begin with the user's name of the command.
func (s Streams) named(text string) string {
	if !s.Plugin {
		return text
	}
	return commandLine.ReplaceAllString(text, pluginName+" $1")
}

// newHelp returns a help command that returns an error for a wrong name.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Print the help of a command",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err == nil {
				err = noSuchCommand(cmd.Root(), rest)
			}
			if err != nil {
				return err
			}
			return target.Help()
		},
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version [flags]",
		Short:   "Print the version of tidings",
		Long:    "Version prints the version of this program and of what it was built with.",
		Example: "  tidings version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionOf(info))
			return err
		},
	}
}

// versionOf returns the version of a binary, which includes the commit; info may be nil.
func versionOf(info *debug.BuildInfo) string {
	built := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	if info == nil {
		info = new(debug.BuildInfo)
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/client-go" {
			built = "client-go " + module.Version + ", " + built
		}
	}
	return fmt.Sprintf("tidings %s (%s)", cmp.Or(info.Main.Version, "(devel)"), built)
}

// maxTypos is the largest number of wrong letters in a name for which a similar one is suggested.
const maxTypos = 2

// suggest returns up to three names that are similar to a mistyped one, in the way in which cobra
// suggests commands.
func suggest(typed string, names []string) []string {
	similar := &cobra.Command{SuggestionsMinimumDistance: maxTypos}
	for _, name := range names {
		similar.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	found := similar.SuggestionsFor(typed)
	return found[:min(len(found), 3)]
}

// noSuchCommand accepts no arguments, and suggests commands with a similar name.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "the commands are " + strings.Join(commandNames(cmd), ", ")
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = "did you mean " + strings.Join(similar, " or ") + "?"
	}
	return problem.Usage("there is no command %q: %s", args[0], hint)
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return problem.Usage("%s takes no arguments, only flags: %q", cmd.CommandPath(), args[0])
}

// commandNames returns the names of the commands in the help.
func commandNames(root *cobra.Command) []string {
	var names []string
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return names
}

func complete(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // the flag is not defined
	}
}

func completeWords(cmd *cobra.Command, flag string, words ...string) {
	complete(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// explainFlag returns the error of a flag that cannot be parsed, in terms of the command line. The
// errors of the standard library's parsers name Go functions.
func explainFlag(_ *cobra.Command, err error) error {
	forms := map[string]string{
		"bool": "true or false", "int": "a whole number", "uint64": "a whole number, 0 or above",
		"float64": "a number", "duration": "a number with its unit, as in 30s or 5m",
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		if form := forms[flag.Value.Type()]; form != "" {
			err = problem.Reworded(fmt.Sprintf("--%s %q: write %s", flag.Name,
				invalid.GetValue(), form), err)
		}
	}
	return problem.Usage("%w", err)
}

func (c *common) screen() *view.Screen { return c.screenWith(c.streams.Err) }

// screenWith returns a screen whose notes go to a writer.
func (c *common) screenWith(notes io.Writer) *view.Screen {
	out := c.streams.Out
	return view.NewScreen(out, notes, view.Detect(out, notes, c.colours, c.streams.Getenv))
}

// logger returns the logger of a command, which prints above the status line and does not quote
// Secrets.
func (c *common) logger(screen *view.Screen, secrecy view.Secrecy) *slog.Logger {
	if !c.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(screen, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if err, ok := attr.Value.Any().(error); ok {
				attr.Value = slog.StringValue(secrecy.Error(err).Error())
			}
			return attr
		},
	}))
}
