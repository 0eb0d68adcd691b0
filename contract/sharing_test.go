package contract_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// replica is one of the pods of a workload.
func replica(n int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("web-", n),
			Labels: map[string]string{"app": "web", "tier": "front"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "app", Image: "example.com/app:v1", Args: []string{"--verbose"}},
		}},
	}
}

// replicasOf returns the cached objects of eight replicas, which a server has before the start.
func replicasOf(w *world, s tidings.Selection) (*tidings.Informer[*corev1.Pod], []*corev1.Pod) {
	w.Helper()
	for n := range 8 {
		if _, err := w.server.Create(context.Background(), replica(n)); err != nil {
			w.Fatal(err)
		}
	}
	informer, err := tidings.For[*corev1.Pod](w.factory, s)
	if err != nil {
		w.Fatal(err)
	}
	w.start()
	var all []*corev1.Pod
	for _, pod := range informer.Lister().All() {
		all = append(all, pod)
	}
	if len(all) != 8 {
		w.Fatalf("cached are %d pods", len(all))
	}
	return informer, all
}

// inCommon reports whether two pods have their labels and containers in common.
func inCommon(a, b *corev1.Pod) bool {
	labels := reflect.ValueOf(a.Labels).UnsafePointer() == reflect.ValueOf(b.Labels).UnsafePointer()
	return labels && &a.Spec.Containers[0] == &b.Spec.Containers[0]
}

// TestSharing reads replicas with each choice, by a streamed list and by pages.
func TestSharing(t *testing.T) {
	for _, paged := range []bool{false, true} {
		for _, sharing := range []tidings.Sharing{tidings.ShareAll, tidings.ShareStrings, tidings.ShareNothing} {
			t.Run(fmt.Sprintf("%d paged %v", sharing, paged), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					transport := tidings.Transport{Sharing: sharing, NoStreamedLists: paged}
					w := newWorld(t, nil, tidings.FactoryOptions{Transport: transport},
						apisim.Options{})
					defer w.end()
					informer, all := replicasOf(w, tidings.Selection{})
					if inCommon(all[6], all[7]) != (sharing == tidings.ShareAll) {
						t.Errorf("labels and containers in common: %v", inCommon(all[6], all[7]))
					}
					decoding, stats := informer.Health().Decoding, w.factory.SharingStats()
					if sharing == tidings.ShareNothing {
						if decoding.Shared != 0 || decoding.Unshared < 8 ||
							decoding.WhyUnshared == nil || stats.Kept != 0 {
							t.Errorf("health has %+v, the factory %+v", decoding, stats)
						}
					} else if decoding.Shared < 8 || decoding.Unshared != 0 ||
						decoding.WhyUnshared != nil || stats.Kept == 0 {
						t.Errorf("health has %+v, the factory %+v", decoding, stats)
					}
					// An event shares with the list.
					if _, err := w.server.Create(context.Background(), replica(8)); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					late, err := informer.Lister().Namespace("default").Get("web-8")
					if err != nil {
						t.Fatal(err)
					}
					if inCommon(late, all[7]) != (sharing == tidings.ShareAll) {
						t.Errorf("labels and containers of an event in common: %v",
							inCommon(late, all[7]))
					}
				})
			})
		}
	}
}

// TestTransformsOwnTheirObjects has a transform that writes to parts that replicas would share:
// each write must be seen in one object, and nothing may be in common.
func TestTransformsOwnTheirObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		named := tidings.NewTransform(func(pod *corev1.Pod) (*corev1.Pod, error) {
			pod.Labels[pod.Name] = "labelled"
			pod.Spec.Containers[0].Args[0] += " " + pod.Name
			return pod, nil
		})
		informer, all := replicasOf(w, tidings.Selection{Transform: named})
		for _, pod := range all {
			args := pod.Spec.Containers[0].Args
			if len(pod.Labels) != 3 || pod.Labels[pod.Name] != "labelled" ||
				args[0] != "--verbose "+pod.Name {
				t.Errorf("%s has the labels %v and the arguments %v", pod.Name, pod.Labels, args)
			}
		}
		if d := informer.Health().Decoding; d.Shared < 8 {
			t.Errorf("health has %+v: strings should be shared", d)
		}
	})
}

// TestTransformedObjectsShare has a transform return objects that it keeps: the cached ones share
// equal parts, and those that it keeps stay as they are.
func TestTransformedObjectsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		kept := map[string]*corev1.Pod{}
		slim := tidings.NewTransform(func(pod *corev1.Pod) (*corev1.Pod, error) {
			pod.Annotations = map[string]string{"slim": "true"}
			kept[pod.Name] = pod
			return pod, nil
		})
		informer, all := replicasOf(w, tidings.Selection{Transform: slim})
		if !inCommon(all[6], all[7]) {
			t.Error("what a transform returned has nothing in common")
		}
		for _, pod := range all {
			if !reflect.DeepEqual(pod, kept[pod.Name]) {
				t.Errorf("cached is %v, the transform returned %v", pod, kept[pod.Name])
			}
		}
		if inCommon(kept["web-6"], kept["web-7"]) {
			t.Error("the transform's own objects were written to")
		}
		if after := informer.Health().Decoding.After; after.Shared < 8 || after.Alone != 0 {
			t.Errorf("health has %+v", after)
		}
	})
}
