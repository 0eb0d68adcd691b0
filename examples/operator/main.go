// Command operator runs an operator written with controller-runtime on Tidings. It keeps a Deployment and a ConfigMap
// for each Website; one option of the manager's cache puts Tidings' informers behind it, and nothing else knows of them.
//
//	go run . --kubeconfig ~/.kube/config --namespaces shop,blog
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	// --kubeconfig is a flag of controller-runtime, there as soon as its package config is imported.
	namespaces := flag.String("namespaces", "", "namespaces to work in, separated by commas; the default is all")
	flag.Parse()
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, split(*namespaces)); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

// run is the operator until ctx ends.
func run(ctx context.Context, namespaces []string) error {
	cluster, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --kubeconfig: %w", err)
	}
	o, err := options(namespaces)
	if err != nil {
		return err
	}
	m, err := newManager(ctx, cluster, o)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// split returns the names in a list that commas separate.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
