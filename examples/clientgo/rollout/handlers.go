package rollout

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// handler calls react with each state of an object that an event has.
func (c *Controller) handler(react func(metav1.Object)) cache.ResourceEventHandler {
	told := func(obj any) {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		if changed, ok := obj.(metav1.Object); ok {
			react(changed)
			return
		}
		c.options.Report(fmt.Errorf("an event has a %T, which is no object: it is passed over", obj))
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: told,
		UpdateFunc: func(before, after any) {
			told(before) // for what it has ceased to belong to
			told(after)
		},
		DeleteFunc: told,
	}
}

func (c *Controller) deploymentChanged(deployment metav1.Object) {
	c.deploymentQueue.Add(nameOf(deployment))
}

func (c *Controller) setChanged(set metav1.Object) {
	c.setQueue.Add(nameOf(set))
	if owner := metav1.GetControllerOf(set); owner != nil {
		if isDeployment(owner) {
			c.deploymentQueue.Add(cache.NewObjectName(set.GetNamespace(), owner.Name))
		}
		return
	}
	all, err := c.deployments.Deployments(set.GetNamespace()).List(labels.Everything())
	if err != nil {
		c.options.Report(fmt.Errorf("who could adopt replica set %v: %w", nameOf(set), err))
	}
	for _, d := range all {
		if selects(d.Spec.Selector, set) {
			c.deploymentQueue.Add(nameOf(d))
		}
	}
}

func (c *Controller) podChanged(pod metav1.Object) {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		if isSet(owner) {
			c.setQueue.Add(cache.NewObjectName(pod.GetNamespace(), owner.Name))
		}
		return
	}
	all, err := c.sets.ReplicaSets(pod.GetNamespace()).List(labels.Everything())
	if err != nil {
		c.options.Report(fmt.Errorf("who could adopt pod %v: %w", nameOf(pod), err))
	}
	for _, set := range all {
		if selects(set.Spec.Selector, pod) {
			c.setQueue.Add(nameOf(set))
		}
	}
}

func nameOf(obj metav1.Object) cache.ObjectName {
	return cache.NewObjectName(obj.GetNamespace(), obj.GetName())
}

// selects reports whether a selector that can be used matches the labels of an object.
func selects(s *metav1.LabelSelector, obj metav1.Object) bool {
	selector, err := selectorOf(s)
	return err == nil && selector.Matches(labels.Set(obj.GetLabels()))
}

// selectorOf reads a selector, which must not be empty: that would match everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("spec.selector cannot be read: %w", err)
	case selector.Empty():
		return nil, fmt.Errorf("spec.selector is empty and would match everything: name labels")
	}
	return selector, nil
}

func isDeployment(owner *metav1.OwnerReference) bool {
	return owner.Kind == "Deployment" && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}

func isSet(owner *metav1.OwnerReference) bool {
	return owner.Kind == "ReplicaSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}
