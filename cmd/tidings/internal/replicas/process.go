package replicas

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// stopWait bounds the end of a replica. It is longer than the end of the controllers and the group.
const stopWait = time.Minute

// pagesAt begins the line that a replica prints.
const pagesAt = "the pages are at "

// Process is a replica: this program, as a child whose standard input is a pipe. The pipe ends with
// this process too, however that ends.
type Process struct {
	// Name is the identity of the replica in the group, and Pages the address of its first page.
	Name, Pages string

	command *exec.Cmd
	stdin   io.Closer
	told    bool          // the Group has printed its end
	done    chan struct{} // closed when the process has ended, with err
	err     error
}

// Start starts this program with arguments that make it a replica of a name, and waits until it has
// called [Announce].
func Start(stderr io.Writer, name string, arguments ...string) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, command: exec.Command(program, arguments...), done: make(chan struct{})}
	p.command.Stderr = stderr
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()
	address, found := strings.CutPrefix(strings.TrimSpace(line), pagesAt)
	if err != nil || !found {
		p.stop()
		return nil, fmt.Errorf("replica %s has not started: it printed %q: %v", name, line, p.err)
	}
	p.Pages = address
	return p, nil
}

// Announce prints the address of the pages of this process, a replica.
func Announce(out io.Writer, pages string) error {
	_, err := fmt.Fprintf(out, "%s%s\n", pagesAt, pages)
	return err
}

// UntilEOF returns a context of a replica, which ends with ctx and with the standard input. Its
// goroutine ends with the input.
func UntilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, in) //nolint:errcheck // any end is an end
		cancel()
	}()
	return ctx
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

func (p *Process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *Process) stop() {
	p.stdin.Close() //nolint:errcheck // it may have ended
	select {
	case <-p.done:
	case <-time.After(stopWait):
		p.command.Process.Kill() //nolint:errcheck // it may have ended
		<-p.done
	}
}
