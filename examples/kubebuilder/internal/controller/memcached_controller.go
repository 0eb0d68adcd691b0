// Package controller has the controller of Memcacheds.
package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cachev1alpha1 "github.com/tidings-go/tidings/examples/kubebuilder/api/v1alpha1"
)

const (
	image = "docker.io/library/memcached:1.6"
	port  = 11211
	// instanceLabel has the name of the Memcached, on the Deployment's pods.
	instanceLabel = "app.kubernetes.io/instance"
)

// Reasons of the condition Available and of events.
const (
	reasonReady   = "ServersReady"
	reasonWaiting = "WaitingForServers"
	reasonWritten = "DeploymentWritten"
)

// MemcachedReconciler keeps a Deployment for each Memcached, and reports its state.
type MemcachedReconciler struct {
	client.Client
	// Events records writes of Deployments.
	Events events.EventRecorder
}

// The update of finalizers is for clusters whose admission checks owner references.
//
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=update
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile writes the Deployment of a Memcached if it differs, and the status. The garbage
// collector deletes the Deployment with its owner.
func (r *MemcachedReconciler) Reconcile(
	ctx context.Context, request ctrl.Request,
) (done ctrl.Result, err error) {
	var memcached cachev1alpha1.Memcached
	if err := r.Get(ctx, request.NamespacedName, &memcached); err != nil {
		return done, client.IgnoreNotFound(err)
	}
	if !memcached.DeletionTimestamp.IsZero() {
		return done, nil
	}
	servers := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name},
	}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, servers, func() error {
		setServers(servers, &memcached)
		return ctrl.SetControllerReference(&memcached, servers, r.Scheme())
	})
	if err != nil {
		return done, fmt.Errorf("write the Deployment: %w", err)
	}
	if result != controllerutil.OperationResultNone {
		r.Events.Eventf(&memcached, servers, corev1.EventTypeNormal, reasonWritten, "Write",
			"the Deployment %s was %s", servers.Name, result)
	}
	before := memcached.Status.DeepCopy()
	setStatus(&memcached, servers)
	if equality.Semantic.DeepEqual(before, &memcached.Status) {
		return done, nil
	}
	return done, r.Status().Update(ctx, &memcached)
}

// setServers sets the fields of a Deployment that the operator decides. Others stay, such as
// defaults of the server.
func setServers(servers *appsv1.Deployment, memcached *cachev1alpha1.Memcached) {
	if servers.Spec.Selector == nil { // it cannot be changed later
		labels := map[string]string{instanceLabel: memcached.Name}
		servers.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		servers.Spec.Template.Labels = labels
	}
	servers.Spec.Replicas = new(size(memcached))
	pod := &servers.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		pod.Containers = make([]corev1.Container, 1)
	}
	server := &pod.Containers[0]
	server.Name, server.Image = "memcached", image
	server.Ports = []corev1.ContainerPort{
		{Name: "memcached", ContainerPort: port, Protocol: corev1.ProtocolTCP},
	}
}

// setStatus reports the state of the Deployment.
func setStatus(memcached *cachev1alpha1.Memcached, servers *appsv1.Deployment) {
	ready, wanted := servers.Status.ReadyReplicas, size(memcached)
	available := metav1.Condition{
		Type: cachev1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: reasonReady,
		Message:            fmt.Sprintf("%d of %d servers are ready", ready, wanted),
		ObservedGeneration: memcached.Generation,
	}
	if ready < wanted {
		available.Status, available.Reason = metav1.ConditionFalse, reasonWaiting
	}
	memcached.Status.Ready = ready
	meta.SetStatusCondition(&memcached.Status.Conditions, available)
}

// size returns the wanted number of servers. The default is also that of the definition.
func size(memcached *cachev1alpha1.Memcached) int32 {
	if memcached.Spec.Size == nil {
		return 1
	}
	return *memcached.Spec.Size
}

// SetupWithManager adds the controller to a manager.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&cachev1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Complete(r)
}
