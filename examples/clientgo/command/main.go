package command

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Main parses the flags, and runs a program with the cluster that they name until it returns or
// Ctrl-C, or the end of its pod, ends its context.
func Main(name string, run func(context.Context, *rest.Config) error) {
	server := flag.String("server", "",
		"address of the API server, such as http://127.0.0.1:8001; overrides the kubeconfig's")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of a kubeconfig")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags(*server, *kubeconfig)
	if err != nil {
		err = fmt.Errorf("no cluster to talk to, pass --server or --kubeconfig: %w", err)
	} else {
		err = run(ctx, config)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
