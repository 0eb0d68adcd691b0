// Command controller rolls Deployments out. For each Deployment it keeps a ReplicaSet of the pod
// template and of the ConfigMaps that the template mentions. It deletes the ReplicaSets of earlier
// templates once the pods of the new one are ready. This is the work of the Deployment controller
// of kube-controller-manager, so run it on a server without that one:
//
//	go run ./cmd/tidings serve -- go run ./examples/controller
package main

import (
	"context"
	"flag"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	var o options
	listen := flag.String("listen", "127.0.0.1:8080", "address of /livez, /readyz and /metrics")
	flag.IntVar(&o.workers, "workers", 4, "how many Deployments are reconciled at a time")
	flag.StringVar(&o.leaseNamespace, "lease-namespace", "default",
		"namespace of the Lease that replicas compete for")
	command.Main(name, func(ctx context.Context, config *rest.Config) error {
		if err := command.NoArguments(); err != nil {
			return err
		}
		p, err := newProgram(config, o)
		if err != nil {
			return err
		}
		return command.Serve(ctx, *listen, p.handler, p.Run)
	})
}
