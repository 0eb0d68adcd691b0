// Command controller rolls Deployments out: for each Deployment it keeps a ReplicaSet of the pod
// template and of the ConfigMaps that the template mentions, and deletes those of earlier
// templates once the pods of the new one are ready. It does what the Deployment controller of
// kube-controller-manager does, so run it on a server without that one:
//
//	go run ./cmd/tidings serve -- go run ./examples/controller
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

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	var o options
	kubeconfig := flag.String("kubeconfig", "",
		"path of the kubeconfig; the default is $KUBECONFIG or ~/.kube/config")
	listen := flag.String("listen", "127.0.0.1:8080",
		"address of /livez, /readyz and /metrics")
	flag.IntVar(&o.workers, "workers", 4, "how many Deployments are reconciled at a time")
	flag.StringVar(&o.leaseNamespace, "lease-namespace", "default",
		"namespace of the Lease that replicas compete for")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(flag.CommandLine.Output(), "there are no arguments, only flags: %q\n",
			flag.Args())
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *kubeconfig, *listen, o); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// serve runs the controller and answers probes until ctx ends.
func serve(ctx context.Context, kubeconfig, listen string, o options) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("there is no kubeconfig: pass -kubeconfig or set KUBECONFIG")
	}
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	p, err := newProgram(config, o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	server := &http.Server{Handler: p.handler}
	defer server.Close() //nolint:errcheck // the program ends
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("probes are not answered any more", "error", err)
		}
	}()
	slog.Info("probes are answered", "address", listener.Addr().String())
	return p.Run(ctx)
}
