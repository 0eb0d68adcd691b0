package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
	"github.com/tidings-go/tidings/controller/recorder"
)

const (
	// name is that of the controller, of its Lease and of its field manager.
	name = "rollout"
	// finalizer keeps a Deployment until its ReplicaSets are deleted.
	finalizer = "tidings.example.com/rollout"
	// hashLabel tells the pods of one ReplicaSet from those of another one.
	hashLabel = "pod-template-hash"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// rollout reconciles Deployments.
type rollout struct {
	client     typedappsv1.AppsV1Interface
	sets       *tidings.Informer[*appsv1.ReplicaSet]
	configMaps *tidings.Informer[*corev1.ConfigMap]
	events     *recorder.Recorder
}

// mentioned returns the keys of the ConfigMaps in the volumes of a Deployment's pods.
func mentioned(d *appsv1.Deployment) (keys []string) {
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			keys = append(keys, d.Namespace+"/"+volume.ConfigMap.Name)
		}
	}
	return keys
}

// reconcile makes one step for a Deployment. The events of its writes lead to the next one.
func (c *rollout) reconcile(
	ctx context.Context, r controller.Request[*appsv1.Deployment],
) (controller.Result, error) {
	if r.Gone {
		return controller.Result{}, nil // the finalizer was the end
	}
	d, client := r.Object, c.client.Deployments(r.Namespace())
	if d.DeletionTimestamp != nil {
		if len(c.setsOf(ctx, d)) > 0 {
			return controller.Result{}, c.deleteSets(ctx, d, "")
		}
		_, err := objects.RemoveFinalizer(ctx, client, d, finalizer)
		return controller.Result{}, err
	}
	d, err := objects.AddFinalizer(ctx, client, d, finalizer)
	if err != nil {
		return controller.Result{}, err
	}
	current, err := c.apply(ctx, d)
	if err != nil {
		return controller.Result{}, err
	}
	if current.Status.ReadyReplicas >= replicas(d) {
		if err := c.deleteSets(ctx, d, current.Name); err != nil {
			return controller.Result{}, err
		}
	}
	_, err = objects.UpdateStatus(ctx, client, d, func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, UpdatedReplicas: current.Status.Replicas,
		}
		for _, set := range c.setsOf(ctx, d) {
			d.Status.Replicas += set.Status.Replicas
			d.Status.ReadyReplicas += set.Status.ReadyReplicas
		}
	})
	return controller.Result{}, err
}

// replicas returns how many replicas a Deployment asks for.
func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1 // the server's default
	}
	return *d.Spec.Replicas
}

// setsOf returns the ReplicaSets of a Deployment.
func (c *rollout) setsOf(ctx context.Context, d *appsv1.Deployment) (sets []*appsv1.ReplicaSet) {
	for _, set := range controller.Read(ctx, c.sets).Namespace(d.Namespace).Controlled(d.UID) {
		sets = append(sets, set)
	}
	return sets
}

// deleteSets deletes the ReplicaSets of a Deployment but for one.
func (c *rollout) deleteSets(ctx context.Context, d *appsv1.Deployment, keep string) error {
	var errs []error
	for _, set := range c.setsOf(ctx, d) {
		if set.Name == keep || set.DeletionTimestamp != nil {
			continue
		}
		o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(set.UID))}
		err := c.client.ReplicaSets(set.Namespace).Delete(ctx, set.Name, o)
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// apply makes the ReplicaSet of the present template and ConfigMaps as it should be.
func (c *rollout) apply(ctx context.Context, d *appsv1.Deployment) (*appsv1.ReplicaSet, error) {
	template, err := json.Marshal(d.Spec.Template)
	if err != nil {
		return nil, err
	}
	hash := fnv.New32a()
	hash.Write(template) //nolint:errcheck // a hash takes everything
	for _, key := range mentioned(d) {
		configMap, err := controller.Read(ctx, c.configMaps).Get(key)
		if err != nil {
			c.events.Eventf(d, nil, corev1.EventTypeWarning, "ConfigMapMissing", "Rollout",
				"a volume needs the ConfigMap %s", key)
			// The ConfigMap's creation is a change that leads to a call.
			return nil, controller.Terminal(fmt.Errorf("a volume of the pods: %w", err))
		}
		fmt.Fprint(hash, configMap.Data, configMap.BinaryData) //nolint:errcheck // as above
	}
	version := fmt.Sprintf("%08x", hash.Sum32())
	pods := applycorev1.PodTemplateSpec()
	if err := json.Unmarshal(template, pods); err != nil {
		return nil, err
	}
	pods.WithLabels(map[string]string{hashLabel: version})
	set := applyappsv1.ReplicaSet(d.Name+"-"+version, d.Namespace).
		WithLabels(pods.Labels).
		WithOwnerReferences(objects.ControllerRef(d, deploymentKind)).
		WithSpec(applyappsv1.ReplicaSetSpec().
			WithReplicas(replicas(d)).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(pods.Labels)).
			WithTemplate(pods))
	cached, err := controller.Read(ctx, c.sets).Namespace(d.Namespace).Get(*set.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return objects.Apply(ctx, c.client.ReplicaSets(d.Namespace), name, set, cached,
		applyappsv1.ExtractReplicaSet)
}
