package apiserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// process is a run of the program. Its goroutine waits for the end of the run.
type process struct {
	command  *exec.Cmd
	lifeline io.Closer // the program ends when it is closed, as at the end of this process
	ended    chan struct{}
	err      error // the reason of the end; set when ended is closed
}

func start(program string, arguments []string, output io.Writer) (*process, error) {
	p := &process{command: exec.Command(program, arguments...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = output, output
	lifeline, err := p.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	p.lifeline = lifeline
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("apiserver: start kube-apiserver: %w", err)
	}
	go func() {
		p.err = p.command.Wait()
		if p.err == nil {
			p.err = errors.New("it has ended by itself, without an error")
		}
		close(p.ended)
	}()
	return p, nil
}

// failure returns the error with which the process ended by itself, nil while it runs.
func (p *process) failure() error {
	select {
	case <-p.ended:
		return p.err
	default:
		return nil
	}
}

// kill ends the process and returns when it has ended.
func (p *process) kill() error {
	err := p.command.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
