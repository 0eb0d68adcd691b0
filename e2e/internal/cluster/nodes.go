package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/tidings-go/tidings"
)

// workers is the number of pods that are reconciled at a time.
const workers = 4

// kubelets stand in for the kubelets: pods that are bound to a node run, get an address, and end
// when they are deleted; those of jobs succeed.
type kubelets struct {
	client    kubernetes.Interface
	pods      *tidings.Informer[*corev1.Pod]
	queue     workqueue.TypedRateLimitingInterface[string]
	addresses <-chan netip.Addr
}

func (c *Cluster) startNodes(ctx context.Context, config *rest.Config, count int) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for n := range count {
		if err := createNode(ctx, client, fmt.Sprintf("node-%d", n)); err != nil {
			return err
		}
	}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		return err
	}
	pods, err := tidings.For[*corev1.Pod](factory, tidings.Selection{})
	if err != nil {
		return err
	}
	k := &kubelets{
		client: client, pods: pods, addresses: addresses(ctx),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	_, err = pods.AddHandler(tidings.HandlerFunc[*corev1.Pod](func(e tidings.Event[*corev1.Pod]) {
		k.queue.Add(e.Key())
	}), tidings.HandlerOptions{})
	if err != nil {
		return err
	}
	if err := factory.Start(ctx); err != nil {
		return err
	}
	for range workers {
		c.running.Go(func() { k.work(ctx) })
	}
	c.running.Go(func() {
		<-ctx.Done()
		k.queue.ShutDown()
		factory.Shutdown(context.WithoutCancel(ctx)) //nolint:errcheck // its only handler does not block
	})
	return nil
}

func createNode(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// The server taints every new node as not ready, and no controller that removes the taint
	// runs.
	node.Spec.Taints = nil
	if node, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("500"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady,
		Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// addresses returns one address after the other.
func addresses(ctx context.Context) <-chan netip.Addr {
	all := make(chan netip.Addr)
	go func() {
		for a := netip.MustParseAddr("10.1.0.1"); ; a = a.Next() {
			select {
			case all <- a:
			case <-ctx.Done():
				return
			}
		}
	}()
	return all
}

func (k *kubelets) work(ctx context.Context) {
	for {
		key, ended := k.queue.Get()
		if ended {
			return
		}
		if err := k.reconcile(ctx, key); err != nil {
			k.queue.AddRateLimited(key)
		} else {
			k.queue.Forget(key)
		}
		k.queue.Done(key)
	}
}

func (k *kubelets) reconcile(ctx context.Context, key string) error {
	pod, err := k.pods.Lister().Get(key)
	switch {
	case apierrors.IsNotFound(err) || err == nil && pod.Spec.NodeName == "":
		return nil
	case err != nil:
		return err
	case pod.DeletionTimestamp != nil:
		err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	case pod.Status.Phase != corev1.PodPending:
		return nil
	}
	pod = pod.DeepCopy()
	if err := k.run(ctx, pod); err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// run changes the status of a pod to that of one that runs, or has succeeded.
func (k *kubelets) run(ctx context.Context, pod *corev1.Pod) error {
	var address netip.Addr
	select {
	case address = <-k.addresses:
	case <-ctx.Done():
		return ctx.Err()
	}
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.PodIP, pod.Status.PodIPs = address.String(), []corev1.PodIP{{IP: address.String()}}
	ready := corev1.ConditionTrue
	finished := slices.ContainsFunc(pod.OwnerReferences,
		func(o metav1.OwnerReference) bool { return o.Kind == "Job" })
	if finished {
		pod.Status.Phase, ready = corev1.PodSucceeded, corev1.ConditionFalse
	}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions,
		func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady || c.Type == corev1.ContainersReady
		})
	for _, condition := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: condition, Status: ready, LastTransitionTime: now})
	}
	return nil
}
