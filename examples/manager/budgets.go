package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

// budgets gives each Deployment of several replicas a PodDisruptionBudget that lets one pod be
// missing.
type budgets struct {
	*shared
	budgets *tidings.Informer[*policyv1.PodDisruptionBudget]
}

func (s *shared) newBudgets() (controller.Runner, error) {
	deployments, err := tidings.For[*appsv1.Deployment](s.factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	informer, err := tidings.For[*policyv1.PodDisruptionBudget](s.factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	b := &budgets{s, informer}
	owns := controller.Owns[*appsv1.Deployment](informer)
	return controller.New(deployments, s.deploymentOptions("budgets", owns), b.reconcile)
}

func (b *budgets) reconcile(
	ctx context.Context, r controller.Request[*appsv1.Deployment],
) (controller.Result, error) {
	d := r.Object
	if r.Gone || d.DeletionTimestamp != nil {
		return controller.Result{}, nil // the garbage collector deletes its budget
	}
	client := b.client.PolicyV1().PodDisruptionBudgets(d.Namespace)
	cached, err := controller.Read(ctx, b.budgets).Get(r.Key)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return controller.Result{}, err
	case err == nil && !metav1.IsControlledBy(cached, d):
		return controller.Result{}, nil // somebody else has decided
	case d.Spec.Replicas == nil || *d.Spec.Replicas < 2:
		if err == nil {
			err = client.Delete(ctx, cached.Name, metav1.DeleteOptions{
				Preconditions: metav1.NewUIDPreconditions(string(cached.UID)),
			})
		}
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return controller.Result{}, err
	}
	wanted := applypolicyv1.PodDisruptionBudget(d.Name, d.Namespace).
		WithOwnerReferences(objects.ControllerRef(d,
			appsv1.SchemeGroupVersion.WithKind("Deployment"))).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(d.Spec.Selector.MatchLabels)))
	_, err = objects.Apply(ctx, client, "budgets", wanted, cached,
		applypolicyv1.ExtractPodDisruptionBudget)
	return controller.Result{}, err
}
