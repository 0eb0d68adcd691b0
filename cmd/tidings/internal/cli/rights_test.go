package cli_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings/apisim"
)

// withToken serves an API server in whose requests it puts a token: a kubeconfig's is sent over TLS
// only.
func withToken(t *testing.T, api, token string) (address string) {
	t.Helper()
	to, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, // the frames of a watch come one by one
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	})
	t.Cleanup(server.Close)
	return server.URL
}

// TestTheRolesAreWhatTheCommandsNeed runs each command with the rights of its Role in the manifest.
// No request is refused, and each right is used.
func TestTheRolesAreWhatTheCommandsNeed(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("testdata/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string][]string{
		"watch":        {"watch", "pods", "--until", "create"},
		"record":       {"record", "pods", "--dir", t.TempDir()},
		"top-workload": {"top", "deploy/operator", "--port", "6060", "--path", "/debug/tidings", "--once"},
		"top-pod":      {"top", "pod/web", "--port", "6060", "--path", "/debug/tidings", "--once"},
		"shards":       {"shards", "rollout"},
	}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.Role
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		t.Run(role.Name, func(t *testing.T) {
			rules, err := apisim.RulesOf(role.Namespace, role.Rules)
			if err != nil {
				t.Fatal(err)
			}
			c := newCluster(t, pod("web", corev1.ConditionTrue), &appsv1.Deployment{
				ObjectMeta: meta("operator"), Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				},
			})
			c.createGroup("rollout.web")
			c.RefuseStreamedLists(true) // which count as watches
			if err := c.SetUsers(apisim.User{Name: "ada", Token: "secret", Allow: rules}); err != nil {
				t.Fatal(err)
			}
			address := kubelets(t, withToken(t, c.url, "secret"), "web", "6060", servePages(t))
			s := start(t, append(commands[role.Name],
				"--kubeconfig", kubeconfig(t, address), "--cache-dir", t.TempDir())...)
			if role.Name == "record" {
				s.err.await(t, "now recording")
				s.interrupt()
			}
			s.expect(t, 0)
			if err := c.Requests().CheckRights(rules); err != nil {
				t.Error(err)
			}
		})
		delete(commands, role.Name)
	}
	for name := range commands {
		t.Errorf("the manifest has no role of %s", name)
	}
}
