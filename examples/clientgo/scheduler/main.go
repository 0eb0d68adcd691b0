// Command scheduler sets up its informers as kube-scheduler does: a function of its own
// for pods, with a field selector that leaves out finished pods and a transform
// that drops managed fields, beside the factory's own informers. For every pod without a
// node it prints the node it would choose; it changes nothing.
//
//	go run ./examples/clientgo/scheduler --server http://127.0.0.1:8001
package main

import (
	"context"
	"log"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	command.Main("scheduler", func(ctx context.Context, config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		return run(ctx, client, log.New(os.Stdout, "", 0))
	})
}
