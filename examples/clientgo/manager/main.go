// Command manager is a controller manager: several small controllers on one informer
// factory, started by name from a table, each only where the server has its resource.
//
//	go run ./examples/clientgo/manager --server http://127.0.0.1:8001 --controllers '*,-teams'
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	workers := flag.Int("workers", 2, "how many workers each controller has")
	selected := flag.String("controllers", "*", "names of the controllers to run, with commas "+
		"between: * is all, -NAME leaves one out; there are "+
		strings.Join(names(initializers()), ", "))
	command.Main("manager", func(ctx context.Context, config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		o := options{workers: *workers, controllers: strings.Split(*selected, ",")}
		return run(ctx, client, o, log.New(os.Stdout, "", 0))
	})
}
