// Command lister looks deployments up in the cache of a shared informer: a client, a
// factory for one namespace, its deployment informer, start, wait for the cache, get.
//
//	go run ./examples/clientgo/lister --server http://127.0.0.1:8001 web api
package main

import (
	"context"
	"flag"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	namespace := flag.String("namespace", "default", "namespace of the deployments")
	command.Main("lister", func(ctx context.Context, config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		return run(ctx, client, *namespace, flag.Args(), os.Stdout)
	})
}
