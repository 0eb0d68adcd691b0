package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

// podGC deletes pods some time after they have ended.
type podGC struct{ *shared }

func (s *shared) newPodGC() (controller.Runner, error) {
	pods, err := tidings.For[*corev1.Pod](s.factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	return controller.New(pods, controller.Options[*corev1.Pod]{
		Name: "podgc", Workers: s.workers, Guard: s.guard, Logger: s.logger,
		Ignore: func(old, new *corev1.Pod) bool { return endOf(old).Equal(endOf(new)) },
	}, podGC{s}.reconcile)
}

func (g podGC) reconcile(
	ctx context.Context, r controller.Request[*corev1.Pod],
) (controller.Result, error) {
	pod := r.Object
	end := endOf(pod)
	if r.Gone || pod.DeletionTimestamp != nil || end.IsZero() {
		return controller.Result{}, nil
	}
	if left := time.Until(end.Add(g.podTTL)); left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	err := g.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return controller.Result{}, err
}

// endOf returns when the last container of a pod has ended; zero for a pod that has not.
func endOf(pod *corev1.Pod) (end time.Time) {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return time.Time{}
	}
	end = pod.CreationTimestamp.Time // of a pod that never started
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	return end
}
