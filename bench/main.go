package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"

	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/bench/internal/report"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
	"github.com/tidings-go/tidings/bench/internal/work"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the sub-command of a process that a benchmark starts, or the benchmark.
func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 2 && arguments[0] == report.Worker {
		return runWorker(ctx, arguments[1])
	}
	if len(arguments) == 2 && arguments[0] == report.Server {
		return runServer(arguments[1], os.Stdin)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "do less, in less than two minutes, for a look")
	runs := flags.Int("runs", 0, "how often each case runs on each stack; 0 means 5, and 1 with -quick")
	only := flags.String("only", "", "a regular expression: run the cases whose names match, such as \"reads|idle\"")
	list := flags.Bool("list", false, "list the cases and run none")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q: see bench -help", flags.Arg(0))
	}
	runner := report.Runner{Size: work.Full, Runs: *runs, Progress: os.Stderr}
	if *quick {
		runner.Size = work.Quick
	}
	if *runs == 0 {
		runner.Runs = map[work.Size]int{work.Full: 5, work.Quick: 1}[runner.Size]
	}
	if *only != "" {
		expression, err := regexp.Compile(*only)
		if err != nil {
			return fmt.Errorf("-only: %w", err)
		}
		runner.Only = expression
	}
	if *list {
		return listCases(runner)
	}
	return runAll(ctx, runner, arguments)
}

func listCases(r report.Runner) error {
	for _, w := range work.All() {
		for _, c := range w.Cases(r.Size) {
			if r.Only == nil || r.Only.MatchString(c.String()) {
				if _, err := fmt.Println(c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func runAll(ctx context.Context, runner report.Runner, arguments []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	runner.Program = program
	// What ran until the failure is worth printing.
	result, failure := runner.Run(ctx)
	head, err := report.Head(result, arguments)
	if err != nil {
		return errors.Join(failure, err)
	}
	if _, err := io.WriteString(os.Stdout, head); err != nil {
		return errors.Join(failure, err)
	}
	return errors.Join(failure, result.Markdown(os.Stdout))
}

// runWorker runs a job and prints its metrics.
func runWorker(ctx context.Context, argument string) error {
	var job report.Job
	if err := json.Unmarshal([]byte(argument), &job); err != nil {
		return fmt.Errorf("%s: %w", report.Worker, err)
	}
	// client-go logs every watch that ends; what fails is told by the workload.
	klog.SetLogger(klog.Logger{})
	s, err := stack.ByName(job.Stack)
	if err != nil {
		return err
	}
	w, err := work.ByName(job.Case.Work)
	if err != nil {
		return err
	}
	metrics, err := w.Run(ctx, work.Run{Case: job.Case, Stack: s, URL: job.URL})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(metrics)
}

// runServer serves until its input ends, which it does with the process that started it.
func runServer(argument string, until io.Reader) error {
	var spec server.Spec
	if err := json.Unmarshal([]byte(argument), &spec); err != nil {
		return fmt.Errorf("%s: %w", report.Server, err)
	}
	handler, err := server.New(spec)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	if _, err := fmt.Printf("http://%s\n", listener.Addr()); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, until); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
