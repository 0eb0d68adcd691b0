package cache_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// TestSameVersionOfAnotherHistory: after a restored backup, a version may name another state
// than before. Handlers receive that state as an update, also between resyncs. (client-go takes
// an equal version for a resync, and does not call the handler.)
func TestSameVersionOfAnotherHistory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		before, after, same := labelled("a", "1"), labelled("a", "2"), versioned("b", "4")
		for _, pod := range []*corev1.Pod{before, after, same} {
			pod.UID = types.UID("uid-" + pod.Name)
		}
		before.ResourceVersion, after.ResourceVersion = "5", "5"
		lists := []*corev1.PodList{podList("9", before, same), podList("7", after, same)}
		watches := 0
		server := &script{
			list: func(metav1.ListOptions) (runtime.Object, error) {
				list := lists[0]
				if len(lists) > 1 {
					lists = lists[1:]
				}
				return list.DeepCopy(), nil
			},
			watch: func(metav1.ListOptions) (watch.Interface, error) {
				w := watch.NewRaceFreeFake()
				if watches++; watches == 1 {
					time.AfterFunc(3*time.Minute, func() { w.Error(&metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}) })
				}
				return w, nil
			},
		}
		informer := cache.NewSharedIndexInformer(server, &corev1.Pod{}, time.Minute, nil)
		var handler recorder
		_, err := informer.AddEventHandlerWithResyncPeriod(&handler, 0)
		must(t, err)
		_, err = informer.AddEventHandler(clientgo.ResourceEventHandlerFuncs{})
		must(t, err)
		run(t, informer)
		time.Sleep(4 * time.Minute)
		handler.want(t, "add default/a 5 initial", "add default/b 4 initial", "update default/a 5→5")
		if obj, _, _ := informer.GetStore().GetByKey("default/a"); obj.(*corev1.Pod).Labels["n"] != "2" {
			t.Errorf("the cache holds %v", obj)
		}
	})
}
