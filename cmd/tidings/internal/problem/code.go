package problem

import (
	"errors"
	"fmt"
	"strings"
)

// The codes that the command exits with.
const (
	CodeOK    = 0
	CodeFault = 1
	CodeUsage = 2
)

// UsageError is a command line that cannot be.
type UsageError struct {
	// Command is the command whose help has the answer, as in "tidings watch".
	Command string
	// Err says what is wrong.
	Err error
}

// Error says what is wrong.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// Usage returns a UsageError with a message of its own.
func Usage(command, format string, args ...any) error {
	return &UsageError{Command: command, Err: fmt.Errorf(format, args...)}
}

// Code returns the code to exit with.
func Code(err error) int {
	switch {
	case err == nil:
		return CodeOK
	case isUsage(err):
		return CodeUsage
	default:
		return CodeFault
	}
}

func isUsage(err error) bool {
	_, ok := errors.AsType[*UsageError](err)
	return ok
}

// Message returns what to print for an error: one line, and for a wrong command
// line where its help is.
func Message(err error) string {
	message := "tidings: " + OneLine(err.Error())
	if usage, ok := errors.AsType[*UsageError](err); ok {
		message += fmt.Sprintf("\nRun `%s --help` for usage.", usage.Command)
	}
	return message
}

// OneLine joins the lines of a text, without the space around them.
func OneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// Without returns an error whose text does not begin with a prefix that says nothing to
// the user of a command. It wraps err.
func Without(prefix string, err error) error {
	return Reworded(strings.TrimPrefix(err.Error(), prefix), err)
}

// Reworded returns an error with another text. It wraps err.
func Reworded(line string, err error) error { return &Explained{line: line, err: err} }
