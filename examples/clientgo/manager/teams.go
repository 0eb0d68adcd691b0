package main

import (
	"context"
	"log"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/examples/clientgo/loop"
)

// teamLabel names the team of a namespace.
const teamLabel = "team"

// teams gives every deployment the team label of its namespace, if that has one.
type teams struct {
	client      kubernetes.Interface
	namespaces  corelisters.NamespaceLister
	deployments appslisters.DeploymentLister
	loop        *loop.Loop
	out         *log.Logger
}

func startTeams(ctx context.Context, m manager) (bool, error) {
	if !m.available[appsv1.SchemeGroupVersion.WithResource("deployments")] ||
		!m.available[corev1.SchemeGroupVersion.WithResource("namespaces")] {
		return false, nil
	}
	namespaces, deployments := m.factory.Core().V1().Namespaces(), m.factory.Apps().V1().Deployments()
	t := &teams{client: m.client, namespaces: namespaces.Lister(), deployments: deployments.Lister(), out: m.logger("teams")}
	t.loop = loop.New(math.MaxInt, t.out, t.reconcile)
	if err := t.loop.Follow(deployments.Informer(), t.loop.Enqueue); err != nil {
		return true, err
	}
	if err := t.loop.Follow(namespaces.Informer(), t.enqueueAllOf); err != nil {
		return true, err
	}
	m.start(ctx, t.loop)
	return true, nil
}

// enqueueAllOf puts the deployments of a namespace into the queue.
func (t *teams) enqueueAllOf(namespace any) {
	name, err := cache.DeletionHandlingObjectToName(namespace)
	if err != nil {
		t.out.Printf("an event without a key: %v", err)
		return
	}
	all, err := t.deployments.Deployments(name.Name).List(labels.Everything())
	if err != nil {
		t.out.Printf("list the deployments of %s: %v", name.Name, err)
		return
	}
	for _, d := range all {
		t.loop.Enqueue(d)
	}
}

func (t *teams) reconcile(ctx context.Context, key cache.ObjectName) error {
	namespace, err := t.namespaces.Get(key.Namespace)
	if apierrors.IsNotFound(err) {
		return nil // its deployments go with it
	}
	if err != nil {
		return err
	}
	d, err := t.deployments.Deployments(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	team := namespace.Labels[teamLabel]
	if team == "" || d.Labels[teamLabel] == team {
		return nil
	}
	changed := d.DeepCopy() // the original belongs to the cache
	metav1.SetMetaDataLabel(&changed.ObjectMeta, teamLabel, team)
	if _, err := t.client.AppsV1().Deployments(key.Namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	t.out.Printf("%v belongs to %s", key, team)
	return nil
}
