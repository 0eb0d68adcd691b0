// Command customtype is a controller for a resource of its own, the widgets of the API
// group shop.example.com, with the clientset, listers and informers that the generators
// of Kubernetes wrote for it. The generated informers run on the factory of the built-in
// types, without being generated again.
//
//	go run ./examples/clientgo/customtype --kubeconfig ~/.kube/config
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	server := flag.String("server", "", "address of the API server, such as http://127.0.0.1:8001; overrides the kubeconfig's")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of a kubeconfig")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := connect(ctx, *server, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "customtype:", err)
		os.Exit(1)
	}
}

// connect runs the controller until ctx ends.
func connect(ctx context.Context, server, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --server or --kubeconfig: %w", err)
	}
	f, err := newInformers(config)
	if err != nil {
		return err
	}
	return run(ctx, f, os.Stdout)
}
