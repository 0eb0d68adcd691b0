package problem

import (
	"errors"
	"fmt"
	"strings"
)

// The exit codes.
const (
	CodeOK    = 0
	CodeFault = 1
	CodeUsage = 2
)

// UsageError is an error of the command line.
type UsageError struct {
	// Command is the command with the help to read, as in "tidings watch".
	Command string
	// Err says what is wrong.
	Err error
}

// Error says what is wrong.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// Usage returns a UsageError with a formatted message.
func Usage(command, format string, args ...any) error {
	return &UsageError{Command: command, Err: fmt.Errorf(format, args...)}
}

// Code returns the exit code for an error.
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

// Message returns the text to print for an error: one line, and for a UsageError a hint at the
// help.
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

// Reworded returns an error with another text. It wraps err.
func Reworded(line string, err error) error { return &Explained{line: line, err: err} }
