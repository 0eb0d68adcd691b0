package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"sync"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	appslisters "k8s.io/client-go/listers/apps/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/examples/clientgo/loop"
)

// budgets prints for every disruption budget how many deployments it protects. A server may
// lack the policy group: then this controller is skipped.
type budgets struct {
	budgets     policylisters.PodDisruptionBudgetLister
	deployments appslisters.DeploymentLister
	out         *log.Logger

	mu   sync.Mutex // guards said
	said map[cache.ObjectName]string
}

func startBudgets(ctx context.Context, m manager) (bool, error) {
	if !m.available[policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")] {
		return false, nil
	}
	informer, deployments := m.factory.Policy().V1().PodDisruptionBudgets(), m.factory.Apps().V1().Deployments()
	out := m.logger("budgets")
	b := &budgets{budgets: informer.Lister(), deployments: deployments.Lister(), out: out, said: map[cache.ObjectName]string{}}
	l := loop.New(math.MaxInt, out, b.reconcile)
	if err := l.Follow(informer.Informer(), l.Enqueue); err != nil {
		return true, err
	}
	// It reads deployments without following them: their cache must be filled all the same.
	l.Await(deployments.Informer().HasSynced)
	m.start(ctx, l)
	return true, nil
}

func (b *budgets) reconcile(_ context.Context, key cache.ObjectName) error {
	budget, err := b.budgets.PodDisruptionBudgets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		b.say(key, "is gone")
		return nil
	}
	if err != nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		b.say(key, fmt.Sprintf("has an invalid selector: %v", err))
		return nil // trying again cannot help
	}
	all, err := b.deployments.Deployments(key.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	protected := 0
	for _, d := range all {
		if selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			protected++
		}
	}
	b.say(key, fmt.Sprintf("protects %d of %d deployments", protected, len(all)))
	return nil
}

// say prints a result for a budget, unless it is the same as before: the status of a budget
// changes often, and resyncs repeat it.
func (b *budgets) say(key cache.ObjectName, found string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.said[key] != found {
		b.said[key] = found
		b.out.Printf("%v %s", key, found)
	}
}
