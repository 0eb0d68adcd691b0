// Command customtype follows a resource of its own, the widgets of the API group
// shop.example.com, with the clientset, listers and informers that the generators of
// Kubernetes wrote for it. The generated informers run on the factory of the built-in
// types, without being generated again.
//
//	go run ./examples/clientgo/customtype --kubeconfig ~/.kube/config
package main

import (
	"context"
	"log"
	"os"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/examples/command"
)

func main() {
	command.Main("customtype", func(ctx context.Context, config *rest.Config) error {
		f, err := newInformers(config)
		if err != nil {
			return err
		}
		return run(ctx, f, log.New(os.Stdout, "", 0))
	})
}
