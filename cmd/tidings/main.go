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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}))
}
