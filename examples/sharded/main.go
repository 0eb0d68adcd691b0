// Command sharded divides the objects of a controller among its replicas. Without flags it starts
// an API server in memory and three replicas, each of which is a process, and prints which of them
// has which slots:
//
//	go run ./examples/sharded
//
// With -replica it is one replica, in the cluster of the kubeconfig or of its pod.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidings-go/tidings/examples/command"
	"github.com/tidings-go/tidings/internal/test/replicas"
)

// flags are the command line.
type flags struct {
	options
	isReplica, untilEOF, isVerbose bool
	kubeconfig, server, listen     string
}

func main() {
	var f flags
	flag.BoolVar(&f.isReplica, "replica", false, "be one replica, in a cluster")
	flag.StringVar(&f.kubeconfig, "kubeconfig", "", "with -replica, path of the kubeconfig; "+
		"the default is $KUBECONFIG, ~/.kube/config or the cluster of the pod")
	flag.StringVar(&f.server, "server", "",
		"with -replica, address of an API server without credentials, in place of a kubeconfig")
	flag.StringVar(&f.listen, "listen", "127.0.0.1:0",
		"with -replica, address of the pages, /livez, /readyz and /metrics")
	flag.StringVar(&f.namespace, "namespace", "default", "namespace of the Leases of the group")
	flag.StringVar(&f.identity, "identity", "",
		"with -replica, its name in the group; the default is the host's name")
	flag.StringVar(&f.generation, "generation", "",
		"with -replica, version of the program; the default is $POD_TEMPLATE_HASH")
	flag.DurationVar(&f.lease, "lease", 0, "how long others wait for a replica that does not renew "+
		"its Lease; the default is 15s with -replica, and 5s without")
	flag.BoolVar(&f.untilEOF, "until-eof", false,
		"with -replica, end with the standard input, and not with Ctrl-C")
	flag.BoolVar(&f.isVerbose, "v", false, "log what replicas do, not only what goes wrong")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(flag.CommandLine.Output(), "there are no arguments, only flags: %q\n", flag.Args())
		flag.Usage()
		os.Exit(2)
	}
	if err := f.run(); err != nil {
		fmt.Fprintf(os.Stderr, "sharded: %v\n", err)
		os.Exit(1)
	}
}

// run runs a replica or the demonstration until a signal, or the end of the standard input.
func (f *flags) run() error {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if f.untilEOF {
		signal.Ignore(os.Interrupt) // Ctrl-C goes to the parent as well
		signals = signals[1:]
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends the program at once
	if f.untilEOF {
		ctx = replicas.UntilEOF(ctx, os.Stdin)
	}
	if !f.isReplica {
		return f.runDemo(ctx)
	}
	if !f.isVerbose {
		slog.SetLogLoggerLevel(slog.LevelWarn)
	}
	return f.serve(ctx)
}

// serve runs a replica, and answers requests for its pages, until ctx ends.
func (f *flags) serve(ctx context.Context) error {
	config, err := command.Config(f.server, f.kubeconfig)
	if err != nil {
		return err
	}
	if f.identity == "" {
		if f.identity, err = os.Hostname(); err != nil {
			return fmt.Errorf("-identity: %w", err)
		}
	}
	config.QPS, config.Burst = 100, 200 // of all calls together; 5 and 10 by default
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	r, err := newReplica(config, f.options)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	defer server.Close() //nolint:errcheck // the program ends
	return r.Run(ctx, func(h http.Handler) {
		server.Handler = h
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				slog.Error("requests are not answered any more", "error", err)
			}
		}()
		replicas.Announce(os.Stdout, fmt.Sprintf("http://%s/", listener.Addr())) //nolint:errcheck // nobody reads it
	})
}
