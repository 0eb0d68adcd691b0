package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	appslisters "k8s.io/client-go/listers/apps/v1"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// replicas counts how many replicas every deployment asks for.
type replicas struct {
	deployments appslisters.DeploymentLister
	out         *output

	mu     sync.Mutex // guards counts
	counts map[cache.ObjectName]int32
}

func startReplicas(ctx context.Context, m manager) (http.Handler, bool, error) {
	if !m.available[appsv1.SchemeGroupVersion.WithResource("deployments")] {
		return nil, false, nil
	}
	deployments := m.factory.Apps().V1().Deployments()
	r := &replicas{deployments: deployments.Lister(), out: m.out, counts: map[cache.ObjectName]int32{}}
	l := newLoop("replicas", m.out, r.reconcile)
	if err := l.follow(deployments.Informer(), l.enqueue); err != nil {
		return nil, true, err
	}
	l.start(ctx, m)
	return r, true, nil
}

func (r *replicas) reconcile(_ context.Context, key cache.ObjectName) error {
	d, err := r.deployments.Deployments(key.Namespace).Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, counted := r.counts[key]
	if apierrors.IsNotFound(err) {
		if counted {
			delete(r.counts, key)
			r.out.print("replicas: %v is gone, %d in all", key, r.totalLocked())
		}
		return nil
	}
	wanted := int32(1) // the API server's default
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	if !counted || before != wanted {
		r.counts[key] = wanted
		r.out.print("replicas: %v asks for %d, %d in all", key, wanted, r.totalLocked())
	}
	return nil
}

func (r *replicas) totalLocked() (total int64) {
	for _, n := range r.counts {
		total += int64(n)
	}
	return total
}

// ServeHTTP lists the counts.
func (r *replicas) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	counts := maps.Clone(r.counts)
	r.mu.Unlock()
	compare := func(a, b cache.ObjectName) int { return strings.Compare(a.String(), b.String()) }
	for _, key := range slices.SortedFunc(maps.Keys(counts), compare) {
		fmt.Fprintf(w, "%v %d\n", key, counts[key])
	}
}
