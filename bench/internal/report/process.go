package report

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"time"

	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
	"github.com/tidings-go/tidings/bench/internal/work"
)

// Job is what a worker process is told to do, as its argument.
type Job struct {
	// Stack is the name of the stack.
	Stack string
	// Case is what to run.
	Case work.Case
	// URL is the address of the server, if the case asks for one.
	URL string
}

// The sub-commands of the program that a Runner starts.
const (
	// Worker runs the Job that is its argument and prints its metrics.
	Worker = "worker"
	// Server serves the server.Spec that is its argument, prints its address and ends
	// when its standard input does.
	Server = "serve"
)

// jobLimit is how long one run may take.
const jobLimit = 15 * time.Minute

// runJob runs a job in a process.
func runJob(ctx context.Context, program string, job Job) (work.Metrics, error) {
	argument, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	command := exec.CommandContext(ctx, program, Worker, string(argument))
	command.Env = os.Environ()
	if job.Case.Server != nil {
		command.Env = append(command.Env, stack.Environment(job.Case.Server.Way)...)
	}
	var failure strings.Builder
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("report: %s on %s: %w: %s", job.Case, job.Stack, err, tail(failure.String()))
	}
	var metrics work.Metrics
	if err := json.Unmarshal(output, &metrics); err != nil {
		return nil, fmt.Errorf("report: %s on %s: metrics: %w", job.Case, job.Stack, err)
	}
	return metrics, nil
}

// tail returns the end of what a process wrote, which is where an error is.
func tail(text string) string {
	const most = 2_000
	text = strings.TrimSpace(text)
	if len(text) > most {
		return "… " + text[len(text)-most:]
	}
	return text
}

// serving is a server process.
type serving struct {
	spec    server.Spec
	url     string
	command *exec.Cmd
	stdin   io.Closer
}

// serve starts a server process and waits until it has encoded its objects.
func serve(ctx context.Context, program string, spec server.Spec) (*serving, error) {
	fail := func(err error) (*serving, error) { return nil, fmt.Errorf("report: start a server: %w", err) }
	argument, err := json.Marshal(spec)
	if err != nil {
		return fail(err)
	}
	command := exec.CommandContext(ctx, program, Server, string(argument))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return fail(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := command.Start(); err != nil {
		return fail(err)
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fail(fmt.Errorf("no address: %w (%w)", err, command.Wait()))
	}
	return &serving{spec: spec, url: strings.TrimSpace(url), command: command, stdin: stdin}, nil
}

// is reports whether the server is one of a spec.
func (s *serving) is(spec server.Spec) bool { return s != nil && reflect.DeepEqual(s.spec, spec) }

// stop ends the server.
func (s *serving) stop() error {
	if s == nil {
		return nil
	}
	if err := s.stdin.Close(); err != nil {
		return err
	}
	return s.command.Wait()
}
