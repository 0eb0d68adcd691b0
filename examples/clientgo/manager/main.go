// Command manager is a controller manager: several small controllers on one informer
// factory, started by name from a table, each only where the server has its resource.
//
//	go run ./examples/clientgo/manager --server http://127.0.0.1:8001 --controllers '*,-teams'
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	var o options
	server := flag.String("server", "", "address of the API server, such as http://127.0.0.1:8001; overrides the kubeconfig's")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of a kubeconfig")
	flag.IntVar(&o.workers, "workers", 2, "how many workers each controller has")
	selected := flag.String("controllers", "*", "names of the controllers to run, with commas between: * is all, -NAME leaves one out; there are "+strings.Join(names(initializers()), ", "))
	flag.Parse()
	o.controllers = strings.Split(*selected, ",")

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := connect(ctx, *server, *kubeconfig, o); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// connect makes the client and runs the manager with it until ctx ends.
func connect(ctx context.Context, server, kubeconfig string, o options) error {
	config, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --server or --kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return run(ctx, client, o, log.New(os.Stdout, "", 0))
}
