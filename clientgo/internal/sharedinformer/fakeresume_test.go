package sharedinformer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// unordered is a fake whose versions have no order, and whose first watch ends after a delete.
// Its second watch sends another object.
type unordered struct{ watches int }

func (*unordered) IsWatchListSemanticsUnSupported() bool { return true }

func (*unordered) List(metav1.ListOptions) (runtime.Object, error) {
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: []corev1.Pod{*numbered("a", "9")}}, nil
}

func (u *unordered) Watch(metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(3, false)
	switch u.watches++; u.watches {
	case 1:
		w.Modify(numbered("a", "12"))
		w.Delete(numbered("a", "15"))
		time.AfterFunc(time.Minute, w.Stop)
	case 2:
		w.Add(numbered("b", "3"))
	}
	return w, nil
}

func numbered(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version}}
}

func TestP1_FakeWhoseWatchEndsAfterADelete(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	utilruntime.ErrorHandlers = nil // client-go's handler sleeps in a bubble
	synctest.Test(t, func(t *testing.T) {
		i := New(FromListerWatcher(&unordered{}, Options{Example: &corev1.Pod{}}, nil))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.RunWithContext(ctx)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if keys := i.GetStore().ListKeys(); len(keys) != 1 || keys[0] != "n/b" {
			t.Errorf("the cache has %q", keys)
		}
	})
}
