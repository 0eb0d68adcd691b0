package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// stopWait is how long a replica may take to end. It is longer than the controller and the group
// take.
const stopWait = time.Minute

// process is a replica: this program, as a child whose standard input is a pipe. The pipe ends with
// this process too, however that ends.
type process struct {
	name    string
	pages   string // their address
	command *exec.Cmd
	stdin   io.Closer
	done    chan struct{} // closed when the process has ended, with err
	err     error
}

// startProcess starts a replica, and waits until it has an address.
func startProcess(name string, arguments ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments = append([]string{"-replica", "-until-eof", "-identity", name}, arguments...)
	p := &process{name: name, command: exec.Command(program, arguments...), done: make(chan struct{})}
	p.command.Stderr = os.Stderr
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
	p.pages = "http://" + address
	return p, nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() {
	p.stdin.Close() //nolint:errcheck // it may have ended
	select {
	case <-p.done:
	case <-time.After(stopWait):
		p.command.Process.Kill() //nolint:errcheck // it may have ended
		<-p.done
	}
}
