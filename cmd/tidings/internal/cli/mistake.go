package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// flagMistake says in the words of the command line why a flag cannot be read. The parsers
// of the standard library speak of themselves: strconv.ParseInt and the like.
func flagMistake(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if form := formOf(invalid.GetFlag()); form != "" {
			line := fmt.Sprintf("--%s %q: write %s", invalid.GetFlag().Name, invalid.GetValue(), form)
			err = problem.Reworded(line, err)
		}
	}
	return &problem.UsageError{Command: cmd.CommandPath(), Err: err}
}

// formOf says how the value of a flag is written, "" where the flag's own error says it.
func formOf(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	case "uint64":
		return "a whole number, 0 or above"
	case "float64":
		return "a number"
	case "duration":
		return "a number with its unit, as in 30s or 5m"
	default:
		return ""
	}
}
