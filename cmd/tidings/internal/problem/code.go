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

// The exit statuses of a command that did not run, in the convention of shells.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
	// StatusSignal is added to the number of the signal that ended a command.
	StatusSignal = 128
)

type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// Usage returns an error of the command line with a formatted message.
func Usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func isUsage(err error) bool {
	_, ok := errors.AsType[*usageError](err)
	return ok
}

// StatusError is the exit status of a command that this program ran, or could not run.
type StatusError struct {
	// Status is the exit code of this program.
	Status int
	// Err is the reason why the command did not run; nil after a command that ran.
	Err error
}

// Error returns the reason why the command did not run, or a text with its status.
func (e *StatusError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("the command ended with the exit status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap returns the reason why the command did not run.
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
	}
	return CodeFault
}

// Message returns the text to print for an error of a command, as in "tidings watch". It is one
// line; an error of the command line has a second one with a hint at the help.
func Message(err error, command string) string {
	message := "tidings: " + OneLine(err.Error())
	if isUsage(err) {
		message += fmt.Sprintf("\nRun `%s --help` for usage.", command)
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

type reworded struct {
	error
	line string
}

func (e *reworded) Error() string { return e.line }

func (e *reworded) Unwrap() error { return e.error }

// Reworded returns an error with another text. It wraps err.
func Reworded(line string, err error) error { return &reworded{err, line} }
