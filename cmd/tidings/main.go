// Command tidings shows what happens to the objects of a Kubernetes cluster, as it
// happens: `tidings demo` of a cluster it makes up, `tidings watch` of a real one. And
// `tidings serve` is a small API server, for tests.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/cmd/tidings/internal/cli"
)

func main() {
	// client-go's own log says again what the command explains.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	// A reader that went away, such as head, is an error of the next write, not the end of
	// the process: what has to be saved or removed still is.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}))
}

// endings are the signals that end a command in its own way: Ctrl-C, a polite kill, and the
// terminal that is closed, unless nohup is there to outlive that.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
