package command

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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Main parses the flags, and runs a program with the cluster that they name until it returns or
// Ctrl-C, or the end of its pod, ends its context.
func Main(name string, run func(context.Context, *rest.Config) error) {
	server := flag.String("server", "", "address of an API server without credentials, such as "+
		"http://127.0.0.1:8001 of kubectl proxy, in place of a kubeconfig")
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig; the default is "+
		"$KUBECONFIG, ~/.kube/config or the cluster of the pod")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := Config(*server, *kubeconfig)
	if err == nil {
		err = run(ctx, config)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Config returns how to reach the server of an address, or else the cluster of a kubeconfig, as
// kubectl finds it.
func Config(server, kubeconfig string) (*rest.Config, error) {
	if server != "" {
		return &rest.Config{Host: server}, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("there is no kubeconfig: pass --kubeconfig or set KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

// NoArguments returns an error if the command line has more than flags.
func NoArguments() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("there are no arguments, only flags: %q", flag.Args())
	}
	return nil
}

// Serve answers requests for probes and metrics at an address while run runs.
func Serve(ctx context.Context, listen string, handler http.Handler,
	run func(context.Context) error) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer server.Close() //nolint:errcheck // the program ends
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("requests are not answered any more", "error", err)
		}
	}()
	slog.Info("requests are answered", "address", listener.Addr().String())
	return run(ctx)
}
