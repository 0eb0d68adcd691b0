package main

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

// teamLabel names the team of a namespace.
const teamLabel = "team"

// teams gives every Deployment the team label of its namespace, if that has one.
type teams struct {
	*shared
	namespaces *tidings.Informer[*corev1.Namespace]
}

func (s *shared) newTeams() (controller.Runner, error) {
	deployments, err := tidings.For[*appsv1.Deployment](s.factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	namespaces, err := tidings.For[*corev1.Namespace](s.factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	t := &teams{s, namespaces}
	mentions := controller.References(namespaces, func(d *appsv1.Deployment) []string {
		return []string{d.Namespace}
	})
	return controller.New(deployments, s.deploymentOptions("teams", mentions), t.reconcile)
}

func (t *teams) reconcile(
	ctx context.Context, r controller.Request[*appsv1.Deployment],
) (controller.Result, error) {
	if r.Gone {
		return controller.Result{}, nil
	}
	namespace, err := controller.Read(ctx, t.namespaces).Get(r.Namespace())
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // its Deployments go with it
	}
	if err != nil {
		return controller.Result{}, err
	}
	team := namespace.Labels[teamLabel]
	if team == "" || r.Object.Labels[teamLabel] == team {
		return controller.Result{}, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": r.Object.UID, "labels": map[string]string{teamLabel: team},
	}})
	if err != nil {
		return controller.Result{}, err
	}
	_, err = t.client.AppsV1().Deployments(r.Namespace()).Patch(
		ctx, r.Name(), types.MergePatchType, patch, metav1.PatchOptions{})
	return controller.Result{}, err
}
