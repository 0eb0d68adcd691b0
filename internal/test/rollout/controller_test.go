package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// settling is the time in which the cache should show a write. After it the server is asked for the
// object.
const settling = time.Second

var setKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// controller keeps the pods of replica sets. It has one worker.
type controller struct {
	client kubernetes.Interface
	sets   appslisters.ReplicaSetLister
	pods   corelisters.PodLister
	synced []cache.InformerSynced
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	writes map[cache.ObjectName]map[string]write // by set and pod, until the cache shows them
	report func(error)
}

// newController returns a controller that reads from the informers of a factory, which the
// caller starts afterwards.
func newController(client kubernetes.Interface, f informers.SharedInformerFactory, report func(error)) (*controller, error) {
	sets, pods := f.Apps().V1().ReplicaSets(), f.Core().V1().Pods()
	c := &controller{
		client: client, sets: sets.Lister(), pods: pods.Lister(), report: report,
		writes: map[cache.ObjectName]map[string]write{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, 30*time.Second)),
	}
	for informer, changed := range map[cache.SharedIndexInformer]func(metav1.Object){
		sets.Informer(): func(set metav1.Object) { c.queue.Add(nameOf(set)) },
		pods.Informer(): c.podChanged,
	} {
		registration, err := informer.AddEventHandler(handler(changed))
		if err != nil {
			return nil, err
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

// handler calls changed with each state of an object that an event has.
func handler(changed func(metav1.Object)) cache.ResourceEventHandler {
	one := func(obj any) {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		changed(obj.(metav1.Object))
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: one, DeleteFunc: one,
		UpdateFunc: func(before, after any) {
			one(before) // for the set that it has left
			one(after)
		},
	}
}

func (c *controller) podChanged(pod metav1.Object) {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		if owner.Kind == setKind.Kind {
			c.queue.Add(cache.NewObjectName(pod.GetNamespace(), owner.Name))
		}
		return
	}
	all, err := c.sets.ReplicaSets(pod.GetNamespace()).List(labels.Everything())
	if err != nil {
		c.report(err)
	}
	for _, set := range all {
		if labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(pod.GetLabels())) {
			c.queue.Add(nameOf(set))
		}
	}
}

func nameOf(obj metav1.Object) cache.ObjectName {
	return cache.NewObjectName(obj.GetNamespace(), obj.GetName())
}

// run waits for the informers and then works until ctx ends.
func (c *controller) run(ctx context.Context) {
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return // ctx has ended
	}
	for {
		key, ended := c.queue.Get()
		if ended {
			return
		}
		if err := c.reconcile(ctx, key); err == nil {
			c.queue.Forget(key)
		} else if ctx.Err() == nil {
			c.report(fmt.Errorf("replica set %v, to be tried again: %w", key, err))
			c.queue.AddRateLimited(key)
		}
		c.queue.Done(key)
	}
}

// reconcile brings the pods and the status of a replica set to the wanted state, or deletes
// the pods of a set that is gone.
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	set, err := c.sets.ReplicaSets(key.Namespace).Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	pods, listErr := c.pods.Pods(key.Namespace).List(labels.Everything())
	if listErr != nil {
		return listErr
	}
	if err != nil {
		delete(c.writes, key)
		return c.deleteOrphans(ctx, key, "", pods)
	}
	orphaned := c.deleteOrphans(ctx, key, set.UID, pods)
	if set.DeletionTimestamp != nil {
		return orphaned
	}
	return errors.Join(orphaned, c.keepPods(ctx, key, set, pods))
}

// current reads a replica set from the server; nil if it does not exist.
func (c *controller) current(ctx context.Context, key cache.ObjectName) (*appsv1.ReplicaSet, error) {
	set, err := c.client.AppsV1().ReplicaSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return set, err
}

// deleteOrphans deletes the pods whose controller has the name of the key, but not the UID of
// the set in the cache, nor that of the server.
func (c *controller) deleteOrphans(ctx context.Context, key cache.ObjectName, cached types.UID, pods []*corev1.Pod) error {
	var orphans []*corev1.Pod
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner != nil && owner.Kind == setKind.Kind && owner.Name == key.Name && owner.UID != cached && pod.DeletionTimestamp == nil {
			orphans = append(orphans, pod)
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	c.queue.AddAfter(key, settling) // to see whether they are gone: answers may be wrong
	set, err := c.current(ctx, key)
	if err != nil {
		return err
	}
	var failed []error
	for _, pod := range orphans {
		if set != nil && metav1.GetControllerOf(pod).UID == set.UID {
			failed = append(failed, fmt.Errorf("the cache lacks the owner of %s, which is there", pod.Name))
		} else {
			failed = append(failed, c.deletePod(ctx, pod))
		}
	}
	return errors.Join(failed...)
}

// deletePod deletes a pod, and no other of the same name. NotFound is an error too: the cache
// will agree at the next attempt, or the answer was wrong.
func (c *controller) deletePod(ctx context.Context, pod *corev1.Pod) error {
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	return c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, o)
}

// claim returns the pods that belong to a set, after it has released and adopted pods.
func (c *controller) claim(ctx context.Context, set *appsv1.ReplicaSet, pods []*corev1.Pod) (owned []*corev1.Pod, err error) {
	selector := labels.SelectorFromSet(set.Spec.Selector.MatchLabels)
	var failed []error
	checked := false
	for _, pod := range pods {
		matches, owner := selector.Matches(labels.Set(pod.Labels)), metav1.GetControllerOf(pod)
		switch {
		case owner != nil && owner.UID != set.UID:
		case owner != nil && matches:
			owned = append(owned, pod)
		case owner != nil:
			_, err := c.refer(ctx, pod, map[string]any{"$patch": "delete", "uid": set.UID})
			failed = append(failed, err)
		case matches && pod.DeletionTimestamp == nil && !finished(pod):
			if !checked {
				current, err := c.current(ctx, nameOf(set))
				if err != nil || current == nil || current.UID != set.UID || current.DeletionTimestamp != nil {
					failed = append(failed, fmt.Errorf("the set on the server is not the cached one: %v", err))
					continue
				}
				checked = true
			}
			adopted, err := c.refer(ctx, pod, metav1.NewControllerRef(set, setKind))
			if failed = append(failed, err); err == nil {
				owned = append(owned, adopted)
			}
		}
	}
	return owned, errors.Join(failed...)
}

// refer changes an owner reference. The UID makes the server refuse the patch for another
// pod of the same name.
func (c *controller) refer(ctx context.Context, pod *corev1.Pod, reference any) (*corev1.Pod, error) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "ownerReferences": []any{reference}}})
	if err != nil {
		return nil, err
	}
	return c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
}
