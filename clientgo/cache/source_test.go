package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

// newSource returns client-go's fake of a server with a pod of each name. It counts versions from
// 1 and keeps the changes until ResetWatch.
func newSource(t *testing.T, pods ...string) *cachetesting.FakeControllerSource {
	t.Helper()
	source := cachetesting.NewFakeControllerSource()
	for _, name := range pods {
		source.Add(newPod(name))
	}
	t.Cleanup(source.Shutdown)
	return source
}

// newPod returns a pod of the namespace default, whose UID follows from its name.
func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
}

// versioned returns a pod with a version.
func versioned(name, version string) *corev1.Pod {
	pod := newPod(name)
	pod.ResourceVersion = version
	return pod
}

// labelled returns a pod with the label n.
func labelled(name, n string) *corev1.Pod {
	pod := newPod(name)
	pod.Labels = map[string]string{"n": n}
	return pod
}

// waitForSync waits until the bubble is idle. Then the informer must have synced.
func waitForSync(t *testing.T, informer interface{ HasSynced() bool }) {
	t.Helper()
	synctest.Wait()
	if !informer.HasSynced() {
		t.Fatal("the informer has not synced although everything has come to rest")
	}
}

// podIndexByLabel indexes pods by the label n.
func podIndexByLabel(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Labels["n"]}, nil
}

var noOptions clientgo.SharedIndexInformerOptions

// addHandler adds a handler.
func addHandler(t *testing.T, informer clientgo.SharedInformer, handler clientgo.ResourceEventHandler) clientgo.ResourceEventHandlerRegistration {
	t.Helper()
	registration, err := informer.AddEventHandler(handler)
	must(t, err)
	return registration
}

// record adds a recorder to an informer.
func record(t *testing.T, informer clientgo.SharedInformer) *recorder {
	t.Helper()
	r := new(recorder)
	addHandler(t, informer, r)
	return r
}

// runSynced is run, until the informer has synced.
func runSynced(t *testing.T, informer interface {
	RunWithContext(context.Context)
	HasSynced() bool
}) (stop func()) {
	t.Helper()
	stop = run(t, informer)
	waitForSync(t, informer)
	return stop
}

// same compares two values.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// follow runs an informer of pods with a recorder until it has synced.
func follow(t *testing.T, newInformer newInformerFunc, lw clientgo.ListerWatcher) (clientgo.SharedIndexInformer, *recorder) {
	t.Helper()
	informer := newInformer(lw, &corev1.Pod{}, noOptions)
	r := record(t, informer)
	runSynced(t, informer)
	return informer, r
}

// settle waits for a virtual time, and then until the bubble is idle.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
