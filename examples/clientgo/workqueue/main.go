// Command workqueue is a custom controller: for every deployment, it keeps a ConfigMap with the
// images that the deployment runs. Handlers put keys into a rate-limited work queue, workers take
// them out, and failed keys are tried again.
//
//	go run ./examples/clientgo/workqueue --server http://127.0.0.1:8001
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	namespace := flag.String("namespace", "default", "namespace of the deployments; empty for all")
	workers := flag.Int("workers", 2, "how many deployments are worked on at a time")
	retries := flag.Int("retries", 5,
		"how often a deployment that failed is tried again before it has to change first")
	command.Main("workqueue", func(ctx context.Context, config *rest.Config) error {
		if *workers < 1 || *retries < 0 {
			return fmt.Errorf("--workers %d, --retries %d: there has to be a worker, and retries "+
				"are not negative", *workers, *retries)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Minute,
			informers.WithNamespace(*namespace))
		c, err := newController(client, factory, *retries, log.New(os.Stdout, "", 0))
		if err != nil {
			return err
		}
		factory.StartWithContext(ctx)
		defer factory.Shutdown() // the informers end with ctx; wait for them
		c.Run(ctx, *workers)
		return nil
	})
}
