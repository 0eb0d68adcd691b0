package clientgo_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unfinished is kube-scheduler's selector of pods.
const unfinished = "status.phase!=Succeeded,status.phase!=Failed"

func pod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "test", Operation: metav1.ManagedFieldsOperationUpdate}},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func schedule(t *testing.T, binaries string) string {
	c := newCluster(t, nil)
	for _, name := range []string{"node-a", "node-b"} {
		c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	c.create(
		pod("done", "node-b", corev1.PodSucceeded), pod("broken", "node-b", corev1.PodFailed),
		pod("one", "node-a", corev1.PodRunning), pod("two", "node-a", corev1.PodRunning), pod("three", "node-b", corev1.PodRunning),
		pod("new-1", "", corev1.PodPending),
	)
	p := c.start(binaries, "scheduler")
	p.expect("2 nodes, 4 unfinished pods, 4 of them without managed fields")
	p.expect("default/new-1 would go to node-b, pods there: 1")
	edit(c, podsResource, "default", "new-1", func(p *corev1.Pod) { p.Spec.NodeName = "node-b" })
	c.create(pod("new-2", "", corev1.PodPending))
	p.expect("default/new-2 would go to node-a, pods there: 2")
	// A pod that finishes leaves the selection, which is a delete.
	edit(c, podsResource, "default", "three", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	p.expect("default/three takes up no room any more")
	c.create(pod("new-3", "", corev1.PodPending))
	p.expect("default/new-3 would go to node-b, pods there: 1")
	c.delete(podsResource, "default", "new-3")
	p.expect("default/new-3 takes up no room any more")
	transcript := p.interrupt()
	asked := 0
	for _, request := range c.server.Requests() {
		if request.Resource != podsResource {
			continue
		}
		asked++
		if got := request.Query.Get("fieldSelector"); got != unfinished {
			t.Errorf("a %s of pods had the field selector %q", request.Verb, got)
		}
	}
	if asked == 0 {
		t.Error("it never asked for pods")
	}
	return transcript
}
