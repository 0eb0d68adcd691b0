package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// scripts are what writes the completion script of each shell.
func scripts(cmd *cobra.Command) map[string]func() error {
	root, out := cmd.Root(), cmd.OutOrStdout()
	return map[string]func() error{
		"bash":       func() error { return root.GenBashCompletionV2(out, true) },
		"fish":       func() error { return root.GenFishCompletion(out, true) },
		"powershell": func() error { return root.GenPowerShellCompletionWithDesc(out) },
		"zsh":        func() error { return root.GenZshCompletion(out) },
	}
}

func newCompletion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that lets a shell complete commands, flags, types and names of objects",
		Long: `Completion prints a script for bash, zsh, fish or powershell. With it, the completion key offers
commands and flags, the types that the cluster has, the names of objects, namespaces and contexts.
For bash, the package bash-completion has to be installed.`,
		Example: `  # in bash, until this shell ends; for good, put the line into ~/.bashrc
  source <(tidings completion bash)

  # in zsh, for good
  tidings completion zsh > "${fpath[1]}/_tidings"

  # in fish, for good
  tidings completion fish > ~/.config/fish/completions/tidings.fish`,
	}
	shells := slices.Sorted(maps.Keys(scripts(cmd)))
	cmd.ValidArgs = shells
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || !slices.Contains(shells, args[0]) {
			return problem.Usage(cmd.CommandPath(), "name one shell: %s", strings.Join(shells, ", "))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return scripts(cmd)[args[0]]() }
	return cmd
}
