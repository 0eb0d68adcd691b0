// Command rollout keeps the replica sets and pods of deployments, as the controllers of
// a cluster do, for a server that has none.
//
//	go run ./examples/clientgo/rollout/cmd/rollout --server http://127.0.0.1:8001
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/examples/clientgo/rollout"
)

func main() {
	var o rollout.Options
	server := flag.String("server", "", "address of the API server, such as http://127.0.0.1:8001; overrides the kubeconfig's")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of a kubeconfig")
	namespace := flag.String("namespace", "default", "namespace of the deployments; empty for all")
	flag.IntVar(&o.Workers, "workers", 2, "how many deployments, and how many replica sets, are worked on at a time")
	flag.Parse()
	o.Report = func(err error) { fmt.Fprintln(os.Stderr, "rollout:", err) }

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := connect(ctx, *server, *kubeconfig, *namespace, o); err != nil {
		fmt.Fprintln(os.Stderr, "rollout:", err)
		os.Exit(1)
	}
}

// connect makes the client and runs the controller with it until ctx ends.
func connect(ctx context.Context, server, kubeconfig, namespace string, o rollout.Options) error {
	config, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --server or --kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	controller, err := rollout.New(client, factory, o)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown() // the informers end with ctx; wait for them
	controller.Run(ctx)
	return nil
}
