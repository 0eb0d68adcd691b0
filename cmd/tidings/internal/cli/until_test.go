package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/apisim"
)

// simulated starts an API server with some objects and returns its address.
func simulated(t *testing.T, objects ...runtime.Object) (*apisim.Server, string) {
	t.Helper()
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	create(t, server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	create(t, server, objects...)
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return server, url
}

func create(t *testing.T, server *apisim.Server, objects ...runtime.Object) {
	t.Helper()
	for _, obj := range objects {
		if _, err := server.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func update(t *testing.T, server *apisim.Server, objects ...runtime.Object) {
	t.Helper()
	for _, obj := range objects {
		if _, err := server.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t *testing.T, server *apisim.Server, resource, namespace, name string) {
	t.Helper()
	if _, err := server.Delete(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace, name); err != nil {
		t.Fatal(err)
	}
}

func pod(name string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// ended waits for a command that ends by itself.
func (s *session) ended(t *testing.T, code int, parts ...string) {
	t.Helper()
	if got := <-s.code; got != code {
		t.Errorf("exit code %d, want %d: %s", got, code, s.err)
	}
	for _, part := range parts {
		if !strings.Contains(s.err.String(), part) {
			t.Errorf("%q is not in: %s", part, s.err)
		}
	}
}

func TestWatchUntilAllAreReady(t *testing.T) {
	t.Parallel()
	server, url := simulated(t, pod("web-1", corev1.ConditionTrue), pod("web-2", corev1.ConditionFalse))
	s := start(t, watchArgs(t, url, "pods", "-l", "app=web", "--until", "condition=Ready")...)
	s.err.await(t, `2 pods in namespace "shop"; now waiting for condition=Ready`)
	update(t, server, pod("web-1", corev1.ConditionFalse), pod("web-2", corev1.ConditionTrue))
	s.out.await(t, "shop/web-2  status.conditions[Ready].status False → True")
	update(t, server, pod("web-1", corev1.ConditionTrue))
	s.ended(t, 0, "── condition=Ready: 2 objects, after ", "── watched for ")
	if !strings.HasSuffix(s.out.String(), "shop/web-1  status.conditions[Ready].status False → True\n") {
		t.Errorf("the change that ended it is not the last line: %s", s.out)
	}
}

func TestWatchUntilWhatIsTrueAlready(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, pod("web-1", corev1.ConditionTrue))
	for _, args := range []string{
		"pods --until condition=Ready",
		"pod/web-1 --until jsonpath={.status.phase}=Running",
		"pods web-1 --until create",
		"pods web-2 --until delete",
		"services,configmaps -A --until delete",
		"pods -A --until condition=ready --initial=false -o json --timeout 1m",
	} {
		got := run(t.Context(), watchArgs(t, url, strings.Fields(args)...)...)
		got.expect(t, 0, "after ")
	}
}

func TestWatchUntilDeleted(t *testing.T) {
	t.Parallel()
	server, url := simulated(t, pod("web-1", corev1.ConditionTrue), pod("web-2", corev1.ConditionTrue))
	s := start(t, watchArgs(t, url, "po", "web-1", "--until", "delete")...)
	s.err.await(t, `pod web-1 in namespace "shop"; now waiting for delete`)
	remove(t, server, "pods", "shop", "web-1")
	s.ended(t, 0, "── delete: no object left, after ")
	if strings.Contains(s.out.String(), "web-2") {
		t.Errorf("another object is shown: %s", s.out)
	}
}

func TestWatchUntilWhatDoesNotExistYet(t *testing.T) {
	t.Parallel()
	server, url := simulated(t)
	s := start(t, watchArgs(t, url, "deployment/web", "--until", "condition=Available")...)
	s.err.await(t, `no deployment web yet in namespace "shop"; now waiting`)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	create(t, server, web)
	s.out.await(t, "+ deployment shop/web")
	web.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}
	update(t, server, web)
	s.ended(t, 0, "condition=Available: 1 object, after ")
}

func TestWatchUntilTheTimeIsOver(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, pod("web-1", corev1.ConditionTrue), pod("web-2", corev1.ConditionFalse))
	got := run(t.Context(), watchArgs(t, url, "pods,services", "--until", "condition=Ready", "--timeout", "1s")...)
	if got.code != 1 || !strings.HasSuffix(got.err, "\ntidings: condition=Ready was not reached within 1s: there is no object of services; 1 of 2 objects are not: pod shop/web-2\n") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
	// Without a goal, the time is all there is to wait for.
	run(t.Context(), watchArgs(t, url, "pods", "--timeout", "100ms")...).expect(t, 0, "── watched for ")
}

func TestWatchUntilCtrlC(t *testing.T) {
	t.Parallel()
	_, url := simulated(t)
	s := start(t, watchArgs(t, url, "pods", "--until", "condition=Ready")...)
	s.err.await(t, "now waiting")
	s.interrupt()
	s.ended(t, 1, "tidings: interrupted before condition=Ready was reached")
}

func TestWatchOfSeveralContexts(t *testing.T) {
	t.Parallel()
	east, eastURL := simulated(t, pod("web-1", corev1.ConditionTrue))
	west, westURL := simulated(t)
	path := filepath.Join(t.TempDir(), "config")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: east
contexts: [{name: east, context: {cluster: east, namespace: shop}}, {name: west, context: {cluster: west, namespace: shop}}]
clusters: [{name: east, cluster: {server: "%s"}}, {name: west, cluster: {server: "%s"}}]
`, eastURL, westURL)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"watch", "pods", "--kubeconfig", path, "--cache-dir", t.TempDir(), "--context", "east,west", "--context", "east"}
	s := start(t, append(args, "--until", "condition=Ready")...)
	s.err.await(t, `── east: 1 pod in namespace "shop"`)
	s.err.await(t, `── west: 0 pods in namespace "shop"; now waiting for condition=Ready`)
	s.out.await(t, "  east pod shop/web-1  Running")
	remove(t, east, "pods", "shop", "web-1")
	s.out.await(t, "- east pod shop/web-1")
	create(t, west, pod("web-1", corev1.ConditionTrue))
	s.out.await(t, "+ west pod shop/web-1")
	create(t, east, pod("web-9", corev1.ConditionTrue))
	s.ended(t, 0, "2 objects, after", "  east pods        1      1        0        1\n", "  west pods        1      1        0        0\n", "  total ")

	run(t.Context(), append(args, "--context", "north")...).expect(t, 1, `has no context "north": it has east, west`)
	wrong := []string{"watch", "podz", "--kubeconfig", path, "--cache-dir", t.TempDir(), "--context", "west,east"}
	run(t.Context(), wrong...).expect(t, 1, `context "west": the server has no type "podz": did you mean pods?`)
}
