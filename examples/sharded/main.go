// Command sharded divides the objects of a controller among its replicas: each is this program, with
// an identity of its own.
//
//	go run ./cmd/tidings serve -- go run ./examples/sharded --identity a
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	var o options
	listen := flag.String("listen", "127.0.0.1:0", "address of the pages, /livez, /readyz and /metrics")
	flag.StringVar(&o.namespace, "namespace", "default", "namespace of the Leases of the group")
	flag.StringVar(&o.identity, "identity", "", "name in the group; the default is the host's name")
	flag.StringVar(&o.generation, "generation", "",
		"version of the program; the default is $POD_TEMPLATE_HASH")
	flag.DurationVar(&o.lease, "lease", 0,
		"how long others wait for a replica that does not renew its Lease; the default is 15s")
	command.Main("sharded", func(ctx context.Context, config *rest.Config) error {
		if err := command.NoArguments(); err != nil {
			return err
		}
		host, err := os.Hostname()
		if err != nil && o.identity == "" {
			return fmt.Errorf("--identity: %w", err)
		}
		o.identity = cmp.Or(o.identity, host)
		config.QPS, config.Burst = 100, 200 // of all calls together; 5 and 10 by default
		r, err := newReplica(config, o)
		if err != nil {
			return err
		}
		return r.Run(ctx, func(h http.Handler, run func(context.Context) error) error {
			return command.Serve(ctx, *listen, h, run)
		})
	})
}
