package cli_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/apisim"
)

func TestWatchRefused(t *testing.T) {
	t.Parallel()
	lists := apisim.Match{Verb: "list"}
	for _, c := range []struct {
		args  string
		match apisim.Match
		code  int // 0 for no fault
		parts []string
	}{
		{args: "deploymnets", parts: []string{`the server has no type "deploymnets": did you mean deployments?`}},
		{args: "pods,widgetz", parts: []string{"did you mean widgets?"}},
		{args: "xyzzy", parts: []string{`no type "xyzzy": `, "kubectl api-resources"}},
		{"pods", apisim.Match{}, 401, []string{"does not accept the credentials", `user "ada"`}},
		{"pods", lists, 401, []string{`user "ada"`, `context "staging"`, "log in again"}},
		{"pods", lists, 403, []string{`may not list and watch pods in namespace "shop"`, "`kubectl auth can-i list pods -n shop`"}},
		{"pods -A", lists, 403, []string{"in all namespaces", "`kubectl auth can-i list pods -A`"}},
		{"nodes", lists, 403, []string{"may not list and watch nodes", "`kubectl auth can-i list nodes`"}},
		{"pods --field-selector spec.x=1", lists, 0, []string{"spec.x", "--field-selector"}},
		{"widgets", lists, 404, []string{"no longer has widgets.example.com"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			server := newCluster(t)
			server.RefuseStreamedLists(true)
			if c.code != 0 {
				server.Inject(c.match, apisim.Refuse(c.code, 0))
			}
			fails(t, watchArgs(t, server.url, strings.Fields(c.args)...), c.parts...)
		})
	}
	run(t, 2, watchArgs(t, newCluster(t).url, "nodes", "-n", "shop")...)
}

func widget(size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "one", "namespace": "shop"},
		"spec": map[string]any{"size": size}, "status": map[string]any{"phase": "Ready"},
	}}
}

func TestWatchShowsChanges(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"widgets", "widget", "wdg", "Widget", "widgets.example.com", "widgets.v1.example.com"} {
		server := newCluster(t, widget(1))
		s := start(t, watchArgs(t, server.url, name)...)
		s.out.await(t, "  widget shop/one  Ready, age ")
		s.err.await(t, `1 widget in namespace "shop"; now watching`)
		server.update(widget(2))
		s.out.await(t, "~ widget shop/one  spec.size 1 → 2\n")
		s.interrupt()
		s.expect(t, 0, "── watched for ", "widgets        1      0        1        0")
		if strings.Contains(s.out.String()+s.err.String(), "\x1b") {
			t.Error("escape sequences without a terminal")
		}
	}
	server := newCluster(t, widget(1))
	s := start(t, watchArgs(t, server.url, "widgets", "--initial=false")...)
	s.err.await(t, "now watching")
	server.update(widget(2))
	s.out.await(t, "spec.size 1 → 2\n")
	s.end(t)
	if n := strings.Count(s.out.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, s.out)
	}
}

func TestWatchPrintsDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, initial, changed string }{
		{"-o name", "widget.example.com/one\n", "widget.example.com/one\nwidget.example.com/one\n"},
		{"-o json", `"size": 1`, `"size": 2`},
		{"-o yaml", "size: 1", "---\napiVersion: example.com/v1\nkind: Widget"},
		{"-o json --output-watch-events", `{"type":"ADDED","object":{"apiVersion":"example.com/v1"`, `{"type":"MODIFIED","object":{"apiVersion":"example.com/v1"`},
	} {
		server := newCluster(t, widget(1))
		s := start(t, watchArgs(t, server.url, append([]string{"widgets"}, strings.Fields(c.args)...)...)...)
		s.out.await(t, c.initial)
		server.update(widget(2))
		s.out.await(t, c.changed)
		s.end(t)
	}
}

func TestWatchHidesSecrets(t *testing.T) {
	t.Parallel()
	login := func(password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: meta("login"), Data: map[string][]byte{"password": []byte(password)}}
	}
	// The second watch is malformed: its error quotes the answer.
	malformed := apisim.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"type":"MODIFIED","object":{"data":{"password":"aHVudGVyNA=="`)) //nolint:errcheck // the client has gone
	})
	for _, flags := range []string{"", "-o json", "-o yaml", "-o yaml --output-watch-events", "-o name", "-v"} {
		server := newCluster(t, login("hunter2"))
		server.RefuseStreamedLists(true)
		server.Inject(apisim.Match{Verb: "watch"}.Nth(2), malformed)
		s := start(t, watchArgs(t, server.url, append([]string{"secrets"}, strings.Fields(flags)...)...)...)
		s.err.await(t, "now watching")
		server.update(login("hunter3"))
		server.CutConnections()
		s.err.await(t, "secrets: ")
		s.err.await(t, "again")
		s.end(t)
		if all := s.out.String() + s.err.String(); strings.Contains(all, "aHVudGVy") || strings.Contains(all, "hunter") {
			t.Errorf("%s: the data is shown:\n%s", flags, all)
		}
	}
	s := start(t, watchArgs(t, newCluster(t, login("hunter2")).url, "secrets", "-o", "json", "--show-secrets")...)
	s.out.await(t, "aHVudGVyMg==")
	s.end(t)
}

func TestWatchContinuesAfterTrouble(t *testing.T) {
	t.Parallel()
	server := newCluster(t, widget(1))
	s := start(t, watchArgs(t, server.url, "widgets,nodes")...)
	s.err.await(t, "now watching")
	server.SetAvailable(false)
	s.err.await(t, "lost "+server.url+" (the connection ended); trying again")
	forbidden := server.Inject(apisim.Match{Resource: "widgets.example.com"}, apisim.Refuse(403, 0))
	server.SetAvailable(true)
	s.err.await(t, "widgets: the credentials")
	forbidden.Lift()
	s.err.await(t, "widgets: watching again")
	server.update(widget(2))
	s.out.await(t, "spec.size 1 → 2\n")
	s.end(t)
}

func TestWatchOfASlowServer(t *testing.T) {
	t.Parallel()
	server := newCluster(t)
	slow := server.Inject(apisim.Match{}, apisim.Delay(time.Hour))
	s := start(t, watchArgs(t, server.url, "pods")...)
	s.err.await(t, "asking "+server.url+" for its types")
	s.end(t)
	slow.Lift()
	server.Inject(apisim.Match{Resource: "pods"}, apisim.Delay(2*time.Second))
	s = start(t, watchArgs(t, server.url, "pods")...)
	s.err.await(t, "── listing pods: 0 objects so far\n")
	s.err.await(t, "now watching")
	s.end(t)
}

func TestCompletionOfTypesAndContexts(t *testing.T) {
	t.Parallel()
	server := newCluster(t)
	for _, c := range []struct{ url, typed, want string }{
		{server.url, "depl", "deployments"}, {server.url, "pods,depl", "pods,deployments"},
		{server.url, "events", "events events.events.k8s.io"}, {server.url, "xyz", ""},
		{server.url, "pods --context s", "staging"}, {server.url, "pods --context staging,", "staging,staging"},
		{"http://127.0.0.1:9", "po", ""},
	} {
		args := watchArgs(t, c.url, strings.Fields(c.typed)...)
		s := run(t, 0, append([]string{"__complete"}, args...)...)
		words, _, _ := strings.Cut(s.out.String(), ":")
		if got := strings.Join(strings.Fields(words), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.typed, got, c.want)
		}
	}
}

func TestWatchUntil(t *testing.T) {
	t.Parallel()
	server := newCluster(t, pod("web-1", corev1.ConditionTrue), pod("web-2", corev1.ConditionFalse))
	s := start(t, watchArgs(t, server.url, "pods", "-l", "app=web", "--until", "condition=Ready")...)
	s.err.await(t, `2 pods in namespace "shop"; now waiting for condition=Ready`)
	server.update(pod("web-1", corev1.ConditionFalse), pod("web-2", corev1.ConditionTrue))
	s.out.await(t, "shop/web-2  status.conditions[Ready].status False → True")
	server.update(pod("web-1", corev1.ConditionTrue))
	s.expect(t, 0, "── condition=Ready: 2 objects, after ", "── watched for ")
	if !strings.HasSuffix(s.out.String(), "shop/web-1  status.conditions[Ready].status False → True\n") {
		t.Errorf("the change that ended it is not the last line: %s", s.out)
	}

	for _, args := range []string{ // what is true at the start
		"pods --until condition=Ready", "pod/web-1 --until jsonpath={.status.phase}=Running",
		"pods web-1 --until create", "pods web-3 --until delete", "services,configmaps -A --until delete",
		"pods -A --until condition=ready --initial=false -o json --timeout 1m",
	} {
		run(t, 0, watchArgs(t, server.url, strings.Fields(args)...)...)
	}

	s = start(t, watchArgs(t, server.url, "po", "web-1", "--until", "delete")...)
	s.err.await(t, `pod web-1 in namespace "shop"; now waiting for delete`)
	server.remove("pods", "web-1")
	s.expect(t, 0, "── delete: no object left, after ")
	if strings.Contains(s.out.String(), "web-2") {
		t.Errorf("another object is shown: %s", s.out)
	}

	s = start(t, watchArgs(t, server.url, "deployment/web", "--until", "condition=Available")...)
	s.err.await(t, `no deployment web yet in namespace "shop"; now waiting`)
	web := &appsv1.Deployment{ObjectMeta: meta("web")}
	server.create(web)
	s.out.await(t, "+ deployment shop/web")
	web.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
	}}
	server.update(web)
	s.expect(t, 0, "condition=Available: 1 object, after ")
}

func TestWatchUntilTheTimeIsOver(t *testing.T) {
	t.Parallel()
	server := newCluster(t, pod("web-1", corev1.ConditionTrue), pod("web-2", corev1.ConditionFalse))
	start(t, watchArgs(t, server.url, "pods,services", "--until", "condition=Ready", "--timeout", "1s")...).expect(t, 1,
		"\ntidings: condition=Ready was not reached within 1s: there is no object of services; 1 of 2 objects not yet: pod shop/web-2\n")
	start(t, watchArgs(t, server.url, "pods", "--timeout", "100ms")...).expect(t, 0, "── watched for ")
	s := start(t, watchArgs(t, server.url, "pods", "--until", "condition=Ready")...)
	s.err.await(t, "now waiting")
	s.interrupt()
	s.expect(t, 1, "tidings: interrupted before condition=Ready was reached")
}

func TestWatchOfSeveralContexts(t *testing.T) {
	t.Parallel()
	east, west := newCluster(t, pod("web-1", corev1.ConditionTrue)), newCluster(t)
	args := []string{"--kubeconfig", kubeconfig(t, east.url, west.url), "--cache-dir", t.TempDir(),
		"--context", "staging,production", "--context", "staging"}
	s := start(t, append([]string{"watch", "pods", "--until", "condition=Ready"}, args...)...)
	s.err.await(t, `── staging: 1 pod in namespace "shop"`)
	s.err.await(t, `── production: 0 pods in namespace "shop"; now waiting for condition=Ready`)
	s.out.await(t, "  staging    pod shop/web-1  Running")
	east.remove("pods", "web-1")
	s.out.await(t, "- staging    pod shop/web-1")
	west.create(pod("web-1", corev1.ConditionTrue))
	s.out.await(t, "+ production pod shop/web-1")
	east.create(pod("web-9", corev1.ConditionTrue))
	s.expect(t, 0, "2 objects, after", "  staging pods           1      1        0        1\n",
		"  production pods        1      1        0        0\n", "  total ")
	fails(t, append([]string{"watch", "pods", "--context", "north"}, args...), `has no context "north": it has production, staging`)
	fails(t, append([]string{"watch", "podz"}, args...), `context "staging": the server has no type "podz": did you mean pods?`)
}
