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

// The exit statuses of a command that did not run, as shells have them.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
	// StatusSignal is added to the number of the signal that ended a command.
	StatusSignal = 128
)

// StatusError is the exit status of a command that this program ran, or could not run.
type StatusError struct {
	// Status is the exit code of this program.
	Status int
	// Err says why the command did not run; nil after a command that ran.
	Err error
}

// Error says why the command did not run, or names the status.
func (e *StatusError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("the command ended with the exit status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap returns the reason.
func (e *StatusError) Unwrap() error { return e.Err }

// Code returns the exit code for an error.
func Code(err error) int {
	status, ran := errors.AsType[*StatusError](err)
	switch {
	case err == nil:
		return CodeOK
	case ran:
		return status.Status
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
