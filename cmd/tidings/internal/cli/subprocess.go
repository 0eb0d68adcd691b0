package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// runCommand runs the command of `tidings serve` with the kubeconfig of the server. It returns nil
// for the exit status 0 and a StatusError otherwise.
// Signals end the command instead of this process, which waits for the end of the command: ctx
// matters before its start only.
func runCommand(ctx context.Context, o serveOptions, kubeconfig string, s Streams) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded()...)
	defer signal.Stop(signals)
	if ctx.Err() != nil {
		return o.interrupted()
	}
	child := exec.Command(o.command[0], o.command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = s.In, s.Out, s.Err
	child.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	if err := child.Start(); err != nil {
		return cannotStart(o.command[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case got := <-signals:
			if !sentByTerminal(got) {
				child.Process.Signal(got) //nolint:errcheck // the command has just ended
			}
		case err := <-ended:
			return statusOf(child.ProcessState, err)
		}
	}
}

// forwarded returns the signals that are passed on to the command. The command ignores a signal
// that this process ignores, as nohup makes it ignore SIGHUP.
func forwarded() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP}
	return slices.DeleteFunc(signals, signal.Ignored)
}

// sentByTerminal reports whether a terminal has sent a signal to the command, too. A terminal sends
// the signals of its keys to all processes of the foreground.
func sentByTerminal(s os.Signal) bool {
	if s != os.Interrupt && s != syscall.SIGQUIT {
		return false
	}
	terminal, err := os.Open("/dev/tty") // fails in a process without a terminal
	if err != nil {
		return false
	}
	terminal.Close() //nolint:errcheck // nothing was written
	return true
}

// cannotStart returns the error of a command that did not start, with the exit status of a shell.
func cannotStart(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &problem.StatusError{Status: problem.StatusNotFound, Err: fmt.Errorf(
			"the command %q was not found: name a program in PATH, or its path", name)}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		err = errno
	}
	return &problem.StatusError{Status: problem.StatusNotExecutable, Err: fmt.Errorf(
		"the command %q cannot be executed: %w", name, err)}
}

// statusOf returns the exit status of a command that has ended, in the convention of shells.
func statusOf(state *os.ProcessState, err error) error {
	if err == nil {
		return nil
	}
	if state == nil || state.Success() {
		return err // the output of the command could not be copied
	}
	status := state.ExitCode()
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		status = problem.StatusSignal + int(wait.Signal())
	}
	return &problem.StatusError{Status: status}
}
