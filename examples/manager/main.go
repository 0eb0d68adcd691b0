// Command manager is a controller manager: three controllers on one informer factory, started by
// name, each only while the server has the resources that it needs.
//
//	go run ./cmd/tidings serve -- go run ./examples/manager --controllers '*,podgc'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/examples/clientgo/command"
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
		return serve(ctx, config, *listen, o)
	})
}

// serve runs the controllers and answers probes until ctx ends.
func serve(ctx context.Context, config *rest.Config, listen string, o options) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("there are no arguments, only flags: %q", flag.Args())
	}
	m, err := newManager(config, o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{Handler: m.Handler()}
	defer server.Close() //nolint:errcheck // the program ends
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("probes are not answered any more", "error", err)
		}
	}()
	return m.Run(ctx)
}
