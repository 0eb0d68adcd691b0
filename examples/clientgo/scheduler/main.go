// Command scheduler sets up its informers as kube-scheduler does: a function of its own
// for pods, with a field selector that leaves out finished pods and a transform
// that drops managed fields, beside the factory's own informers. For every pod without a
// node it prints the node it would choose; it changes nothing.
//
//	go run ./examples/clientgo/scheduler --server http://127.0.0.1:8001
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
	once := flag.Bool("once", false, "stop after the pods that are there at the beginning")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := connect(ctx, *server, *kubeconfig, *once); err != nil {
		fmt.Fprintln(os.Stderr, "scheduler:", err)
		os.Exit(1)
	}
}

// connect makes the client and runs the scheduler with it until ctx ends.
func connect(ctx context.Context, server, kubeconfig string, once bool) error {
	config, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --server or --kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return run(ctx, client, once, os.Stdout)
}
