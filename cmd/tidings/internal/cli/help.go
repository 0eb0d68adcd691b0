package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// newHelp is there for those who type it: `tidings COMMAND --help` says the same.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Print the help of a command",
		Long:   "Help prints the help of a command, as its --help does.",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, completeOnly
			}
			return commandNames(cmd.Root()), completeOnly
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				return root.Help()
			}
			about := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == args[0] })
			if about < 0 {
				return noSuchCommand(root, args)
			}
			return root.Commands()[about].Help()
		},
	}
}

// commandNames returns the names of the commands that are offered.
func commandNames(root *cobra.Command) []string {
	var names []string
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return names
}
