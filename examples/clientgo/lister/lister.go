package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/clientgo/informers"
)

// resync is the period in which handlers would receive every cached object again. It never
// asks the server for anything.
const resync = 30 * time.Second

// run fills a cache with the deployments of a namespace and prints those that are
// named, or all of them in order when none is.
func run(ctx context.Context, client kubernetes.Interface, namespace string, names []string, out io.Writer) error {
	//lint:ignore SA1019 old programs call it, and it works as it always did
	factory := informers.NewFilteredSharedInformerFactory(client, resync, namespace, nil)
	deployments := factory.Apps().V1().Deployments()
	// The call for the lister registers the informer with the factory. It must come before Start,
	// which starts the registered informers.
	lister := deployments.Lister().Deployments(namespace)

	ctx, stop := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	defer factory.Shutdown() // waits until the informers have ended, so stop comes first
	defer stop()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("stopped before the cache of %v was filled", kind)
		}
	}

	if len(names) == 0 {
		all, err := lister.List(labels.Everything())
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d deployments in namespace %s\n", len(all), namespace)
		// A lister's order is that of a map.
		slices.SortFunc(all, func(a, b *appsv1.Deployment) int { return cmp.Compare(a.Name, b.Name) })
		for _, d := range all {
			fmt.Fprintln(out, describe(d))
		}
		return nil
	}
	for _, name := range names {
		d, err := lister.Get(name)
		switch {
		case apierrors.IsNotFound(err): // the lister makes the error that the server would
			fmt.Fprintf(out, "%s/%s: not found\n", namespace, name)
		case err != nil:
			return err
		default:
			fmt.Fprintln(out, describe(d))
		}
	}
	return nil
}

// describe returns a line about a deployment.
func describe(d *appsv1.Deployment) string {
	wanted := int32(1) // the API server's default
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	return fmt.Sprintf("%s/%s: %d of %d replicas ready", d.Namespace, d.Name, d.Status.ReadyReplicas, wanted)
}
