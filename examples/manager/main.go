// Command manager is a controller manager: three controllers on one informer factory, started by
// name, each only while the server has the resources that it needs.
//
//	go run ./cmd/tidings serve -- go run ./examples/manager --controllers '*,podgc'
package main

import (
	"context"
	"flag"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	o := options{controllers: controller.Names{"*"}}
	flag.Var(&o.controllers, "controllers", o.controllers.Usage()+"; there are budgets, podgc "+
		"(off by default) and teams")
	flag.IntVar(&o.workers, "workers", 2, "how many calls of each controller run at a time")
	flag.DurationVar(&o.podTTL, "pod-ttl", time.Hour, "how long podgc keeps pods that have ended")
	flag.StringVar(&o.leaseNamespace, "lease-namespace", "default",
		"namespace of the Lease that replicas compete for")
	listen := flag.String("listen", "127.0.0.1:8080", "address of /livez and /readyz")
	command.Main("manager", func(ctx context.Context, config *rest.Config) error {
		if err := command.NoArguments(); err != nil {
			return err
		}
		m, err := newManager(config, o)
		if err != nil {
			return err
		}
		return command.Serve(ctx, *listen, m.Handler(), m.Run)
	})
}
