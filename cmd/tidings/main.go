// Command tidings shows changes of the objects of a Kubernetes cluster: `tidings demo` of a
// simulated one, `tidings watch` of a real one. `tidings serve` is a small API server for tests.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/cmd/tidings/internal/cli"
)

func main() {
	// client-go logs errors that the command explains.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	// When the reader of the output, such as head, has ended, the next write fails instead of
	// ending the process, which still has to remove its kubeconfig. The signal is not ignored, as
	// the command of `tidings serve` would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	streams := cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Plugin: isPlugin(os.Args[0]), Getenv: os.Getenv,
	}
	os.Exit(cli.Run(ctx, os.Args[1:], streams))
}

// isPlugin reports whether a program is named as a plugin of kubectl.
func isPlugin(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == "kubectl-tidings"
}

// endings returns the signals that end a command gracefully: those of Ctrl-C, kill, and a closed
// terminal, unless that is ignored, as under nohup.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
