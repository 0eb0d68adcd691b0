// Command customtype follows a custom resource by its Go type alone: no clientset, no
// listers and no informers are generated for it. It prints, color by color, how many
// pieces of the widgets of the group shop.example.com are ordered and made.
//
//	go run ./examples/customtype --kubeconfig ~/.kube/config
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

// connect follows the widgets until ctx ends.
func connect(ctx context.Context, server, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --server or --kubeconfig: %w", err)
	}
	return run(ctx, config, os.Stdout)
}
