package cache

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/decode/dedup"
)

// sharedPod returns a new pod of a workload, as a decoder of its own would.
func sharedPod(n int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("web-", n), ResourceVersion: fmt.Sprint(n + 1), Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:v1", Args: []string{"--verbose"}}}},
	}
}

// inMemory lists and watches pods that it keeps.
type inMemory struct {
	listed []*corev1.Pod
	events *watch.FakeWatcher
}

func (m *inMemory) List(metav1.ListOptions) (runtime.Object, error) {
	list := &corev1.List{ListMeta: metav1.ListMeta{ResourceVersion: "50"}}
	for _, p := range m.listed {
		list.Items = append(list.Items, runtime.RawExtension{Object: p})
	}
	return list, nil
}

func (m *inMemory) Watch(metav1.ListOptions) (watch.Interface, error) { return m.events, nil }

// IsWatchListSemanticsUnSupported makes the informer read lists without streaming.
func (m *inMemory) IsWatchListSemanticsUnSupported() bool { return true }

// TestSharingOfDecodedObjects checks the objects that informers of a ListerWatcher cache, with
// each choice, from lists and watches. The objects of the ListerWatcher stay as they are.
func TestSharingOfDecodedObjects(t *testing.T) {
	for _, tt := range []struct {
		name      string
		with      *SharingOptions
		transform bool
		common    bool // two pods have their containers in common
		same      bool // the cache has the pointers that were listed
	}{
		{"by itself", nil, false, true, false},
		{"all", &SharingOptions{Among: new(dedup.Table)}, false, true, false},
		{"strings", &SharingOptions{AtMost: tidings.ShareStrings}, false, false, false},
		{"nothing", &SharingOptions{AtMost: tidings.ShareNothing}, false, false, true},
		{"by itself, transformed", nil, true, true, false},
		{"nothing, transformed", &SharingOptions{AtMost: tidings.ShareNothing}, true, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &inMemory{events: watch.NewFakeWithChanSize(10, false)}
				for n := range 40 {
					m.listed = append(m.listed, sharedPod(n))
				}
				lw := cache.ListerWatcher(m)
				if tt.with != nil {
					lw = WithSharing(m, *tt.with)
				}
				informer := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, Indexers{})
				if tt.transform {
					if err := informer.SetTransform(func(obj any) (any, error) { return obj, nil }); err != nil {
						t.Fatal(err)
					}
				}
				stop := make(chan struct{})
				done := make(chan struct{})
				go func() { defer close(done); informer.Run(stop) }()
				defer func() { close(stop); <-done }()
				synctest.Wait()
				event := sharedPod(60)
				m.events.Add(event)
				synctest.Wait()

				cached := func(n int) *corev1.Pod {
					obj, ok, err := informer.GetStore().GetByKey(fmt.Sprint("default/web-", n))
					if !ok || err != nil {
						t.Fatalf("pod %d is not cached: %v", n, err)
					}
					return obj.(*corev1.Pod)
				}
				if cached(60) != event {
					t.Error("an object that was watched just now is another one than was given")
				}
				time.Sleep(time.Minute) // objects are shared once the informer is quiet
				synctest.Wait()
				if common := &cached(38).Spec.Containers[0] == &cached(60).Spec.Containers[0]; common != tt.common {
					t.Errorf("a listed and a watched pod have their containers in common: %v", common)
				}
				if same := cached(38) == m.listed[38] && cached(60) == event; tt.same && !same {
					t.Error("the cached object is not the one that was given")
				}
				for n, p := range m.listed {
					if !reflect.DeepEqual(p, sharedPod(n)) || !reflect.DeepEqual(cached(n), p) {
						t.Errorf("pod %d was written to, or cached as another: %v, %v", n, p, cached(n))
					}
					if tt.common && n > 0 && &p.Spec.Containers[0] == &cached(n - 1).Spec.Containers[0] {
						t.Errorf("a part of the listed pod %d is in another object", n)
					}
				}
				health, ok := HealthOf(informer)
				if after := health.Decoding.After; !ok || (after.Shared >= 41) != (tt.with == nil || tt.with.AtMost < tidings.ShareNothing) || after.Alone != 0 {
					t.Errorf("health says %+v", after)
				}
			})
		})
	}
}
