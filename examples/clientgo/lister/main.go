// Command lister looks deployments up in the cache of a shared informer: a client, a
// factory for one namespace, its deployment informer, start, wait for the cache, get.
//
//	go run ./examples/clientgo/lister --server http://127.0.0.1:8001 web api
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	server := flag.String("server", "", "address of the API server, such as http://127.0.0.1:8001; overrides the kubeconfig's")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of a kubeconfig")
	namespace := flag.String("namespace", "default", "namespace of the deployments")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: lister [flags] [NAME ...]")
		flag.PrintDefaults()
	}
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := connect(ctx, *server, *kubeconfig, *namespace, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "lister:", err)
		os.Exit(1)
	}
}

// connect makes the client and runs the program with it.
func connect(ctx context.Context, server, kubeconfig, namespace string, names []string) error {
	config, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --server or --kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return run(ctx, client, namespace, names, os.Stdout)
}
