// Command operator runs an operator written with controller-runtime on Tidings. It keeps a
// Deployment and a ConfigMap for each Website; options of the manager put Tidings' cache and client
// behind it, and nothing else knows of them.
//
//	go run . --kubeconfig ~/.kube/config --namespaces shop,blog --cache tidings
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
	// --kubeconfig is a flag of controller-runtime, there as soon as its package config is
	// imported.
	namespaces := flag.String("namespaces", "", "namespaces to work in, separated by commas; the default is all")
	caching := flag.String("cache", tidingsCache, "the manager's cache: "+stockCache+" is controller-runtime's, "+tidingsInformers+
		" has Tidings' informers, and "+tidingsCache+" is Tidings' cache and client")
	flag.Parse()
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *caching, split(*namespaces)); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

// run is the operator until ctx ends.
func run(ctx context.Context, caching string, namespaces []string) error {
	cluster, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster to talk to, pass --kubeconfig: %w", err)
	}
	o, err := options(caching, namespaces)
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
