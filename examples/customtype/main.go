// Command customtype follows a custom resource by its Go type alone: no clientset, no
// listers and no informers are generated for it. It prints, color by color, how many
// pieces of the widgets of the group shop.example.com are ordered and made.
//
//	go run ./examples/customtype --kubeconfig ~/.kube/config
package main

import (
	"context"
	"os"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	command.Main("customtype", func(ctx context.Context, config *rest.Config) error {
		return run(ctx, config, os.Stdout)
	})
}
