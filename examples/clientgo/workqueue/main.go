// Command workqueue is a custom controller: it keeps a ConfigMap beside every
// deployment that says which images the deployment runs. Handlers put keys into a
// rate-limited work queue, workers take them out, and what fails is tried again.
//
//	go run ./examples/clientgo/workqueue --server http://127.0.0.1:8001
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings/clientgo/informers"
)

// options are those of the command line.
type options struct {
	namespace string
	workers   int
	retries   int
}

func main() {
	var o options
	server := flag.String("server", "", "address of the API server, such as http://127.0.0.1:8001; overrides the kubeconfig's")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of a kubeconfig")
	flag.StringVar(&o.namespace, "namespace", "default", "namespace of the deployments; empty for all")
	flag.IntVar(&o.workers, "workers", 2, "how many deployments are worked on at a time")
	flag.IntVar(&o.retries, "retries", 5, "how often a deployment that failed is tried again before it has to change first")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := connect(ctx, *server, *kubeconfig, o); err != nil {
		fmt.Fprintln(os.Stderr, "workqueue:", err)
		os.Exit(1)
	}
}

// connect makes the client and runs the controller with it until ctx ends.
func connect(ctx context.Context, server, kubeconfig string, o options) error {
	if o.workers < 1 || o.retries < 0 {
		return fmt.Errorf("--workers %d, --retries %d: there has to be a worker, and retries are not negative", o.workers, o.retries)
	}
	config, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --server or --kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Minute, informers.WithNamespace(o.namespace))
	controller, err := newController(client, factory.Apps().V1().Deployments(), factory.Core().V1().ConfigMaps(), os.Stdout)
	if err != nil {
		return err
	}
	controller.retries = o.retries
	factory.StartWithContext(ctx)
	defer factory.Shutdown() // the informers end with ctx; wait for them
	return controller.run(ctx, o.workers)
}
