// Command deployments is a first program with tidings: it looks a deployment up in the cache of an
// informer, and then prints the changes of all deployments of the namespace until it is
// interrupted.
//
//	go run ./examples/deployments -namespace default web
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/examples/command"
)

// options are the options of the command line.
type options struct {
	namespace string
	name      string        // of the deployment to look up; "" looks none up
	wait      time.Duration // for the first sync
}

func main() {
	var o options
	flag.StringVar(&o.namespace, "namespace", "default", "namespace of the deployments")
	flag.DurationVar(&o.wait, "wait", 30*time.Second, "how long the first list may take")
	command.Main("deployments", func(ctx context.Context, config *rest.Config) error {
		o.name = flag.Arg(0)
		return run(ctx, config, o, os.Stdout)
	})
}

// run prints the deployment that was asked for and then every change, until ctx ends.
func run(ctx context.Context, config *rest.Config, o options, out io.Writer) (err error) {
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Namespaces: []string{o.namespace}})
	if err != nil {
		return err
	}
	deployments, err := tidings.For[*appsv1.Deployment](factory, tidings.Selection{})
	if err != nil {
		return err
	}
	if err := factory.Start(ctx); err != nil {
		return err
	}
	// The informer stops with ctx; Shutdown waits until it has.
	defer func() { err = errors.Join(err, factory.Shutdown(context.WithoutCancel(ctx))) }()

	waiting, cancel := context.WithTimeoutCause(ctx, o.wait, fmt.Errorf("the first list took longer than %v", o.wait))
	defer cancel()
	if err := factory.WaitForSync(waiting); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted
		}
		return err
	}
	fmt.Fprintf(out, "%d deployments in namespace %s\n", deployments.Lister().Len(), o.namespace)
	if o.name != "" {
		lookUp(deployments.Lister(), o, out)
	}
	for e, err := range deployments.Events(ctx) {
		if err != nil {
			return err
		}
		if !e.Initial {
			fmt.Fprintln(out, describe(e))
		}
	}
	return nil
}

// lookUp reads from the cache. After WaitForSync, an object that is not found does not exist.
func lookUp(lister tidings.Lister[*appsv1.Deployment], o options, out io.Writer) {
	d, err := lister.Namespace(o.namespace).Get(o.name)
	switch {
	case apierrors.IsNotFound(err):
		fmt.Fprintf(out, "there is no deployment %s\n", o.name)
	default:
		fmt.Fprintf(out, "%s has %d of %d replicas ready\n", o.name, d.Status.ReadyReplicas, replicas(d))
	}
}

// describe describes an event in a line.
func describe(e tidings.Event[*appsv1.Deployment]) string {
	switch {
	case e.Type == tidings.Updated && replicas(e.Old) != replicas(e.New):
		return fmt.Sprintf("%s %s: replicas %d → %d", e.Type, e.Key(), replicas(e.Old), replicas(e.New))
	case e.Type == tidings.Deleted:
		return fmt.Sprintf("%s %s", e.Type, e.Key())
	default:
		return fmt.Sprintf("%s %s: %d of %d replicas ready", e.Type, e.Key(), e.New.Status.ReadyReplicas, replicas(e.New))
	}
}

// replicas returns how many replicas a deployment asks for.
func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1 // the API server's default
	}
	return *d.Spec.Replicas
}
