package apisim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// pod creates a pod, on a node unless that is "".
func (b *bench) pod(name, node string) *corev1.Pod {
	b.Helper()
	given := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	given.Spec.NodeName, given.Spec.TerminationGracePeriodSeconds = node, new(int64(30))
	made, err := Create(b.ctx, b.server, given)
	b.must(err)
	return made
}

func TestBinding(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		pods, dry := client.CoreV1().Pods("default"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		made := b.pod("a", "")
		bind := func(uid types.UID, o metav1.CreateOptions) error {
			return pods.Bind(b.ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid, Labels: map[string]string{"zone": "z"}, Annotations: map[string]string{"a": "b"}},
				Target:     corev1.ObjectReference{Kind: "Node", Name: "n"},
			}, o)
		}
		if err := bind("another", metav1.CreateOptions{}); !apierrors.IsConflict(err) {
			b.Errorf("another UID: %v", err)
		}
		b.must(bind(made.UID, dry))
		if same, err := pods.Get(b.ctx, "a", metav1.GetOptions{}); err != nil || same.ResourceVersion != made.ResourceVersion {
			b.Errorf("after a dry run: %+v, %v", same, err)
		}
		b.must(bind(made.UID, metav1.CreateOptions{}))
		bound, err := pods.Get(b.ctx, "a", metav1.GetOptions{})
		if err != nil || bound.Spec.NodeName != "n" || bound.Labels["zone"] != "z" || bound.Annotations["a"] != "b" ||
			bound.Generation != made.Generation || len(bound.Status.Conditions) != 1 || bound.Status.Conditions[0].Type != corev1.PodScheduled {
			b.Errorf("the pod is %+v, %v", bound, err)
		}
		if err := bind("", metav1.CreateOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `pods/binding "a": pod a is already assigned to node "n"`) {
			b.Errorf("a second binding: %v", err)
		}
	})
}

func TestEviction(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		pods := client.CoreV1().Pods("default")
		made := b.pod("a", "n")
		events, err := pods.Watch(b.ctx, at(made.ResourceVersion))
		b.must(err)
		seen := b.collect(events)
		evict := func(name string, o *metav1.DeleteOptions) error {
			return pods.EvictV1(b.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: o})
		}
		if err := evict("a", &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}); !apierrors.IsConflict(err) {
			b.Errorf("another UID: %v", err)
		}
		b.must(evict("a", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
		b.must(evict("a", &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))}))
		left, err := pods.Get(b.ctx, "a", metav1.GetOptions{})
		if err != nil || left.DeletionTimestamp == nil || len(left.Status.Conditions) != 1 || left.Status.Conditions[0].Type != corev1.DisruptionTarget {
			b.Errorf("an evicted pod on a node is %+v, %v", left, err)
		}
		b.must(evict("a", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		if _, err := pods.Get(b.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("it is still there: %v", err)
		}
		if got := fmt.Sprint(seen()); strings.Count(got, "MODIFIED") != 3 || strings.Count(got, "DELETED a@"+b.version()) != 1 {
			b.Errorf("the events are %s", got)
		}
		if err := evict("a", nil); !apierrors.IsNotFound(err) {
			b.Errorf("a pod that is gone: %v", err)
		}
	})
}

// TestAnswersBelowPods checks the answers to bindings and evictions, which are a Status without a
// version, and the refusals.
func TestAnswersBelowPods(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.pod("a", "")
		const path = "/api/v1/namespaces/default/pods/a/"
		const done = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}`
		named := func(kind, name, more string) string {
			return fmt.Sprintf(`{"kind":%q,"metadata":{"name":%q}%s}`, kind, name, more)
		}
		binding := named("Binding", "a", `,"apiVersion":"v1","target":{"name":"n"}`)
		eviction := named("Eviction", "a", `,"apiVersion":"policy/v1"`)
		b.ask("",
			ask{"POST " + path + "binding", named("Binding", "b", `,"apiVersion":"v1"`), 400, "does not match the name on the URL"},
			ask{"POST " + path + "binding", named("Binding", "a", `,"apiVersion":"v1"`), 500, "target.name"},
			ask{"POST " + path + "binding", eviction, 400, "does not match the expected API version (v1)"},
			ask{"GET " + path + "binding", "", http.StatusMethodNotAllowed, ""},
			ask{"POST " + path + "binding", binding, 201, done},
			ask{"POST " + path + "eviction", eviction, 201, done},
			ask{"POST /api/v1/namespaces/default/configmaps/a/eviction", eviction, 404, "could not find"},
			ask{"GET " + strings.TrimSuffix(path, "/"), "", 200, "EvictionByEvictionAPI"})
	})
}
