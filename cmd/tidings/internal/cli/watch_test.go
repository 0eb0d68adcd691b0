package cli_test

import (
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/apisim"
)

// connectDelay is longer than the time after which watch prints a note that it connects.
const connectDelay = 1200 * time.Millisecond

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
		{args: "selfsubjectaccessreviews", parts: []string{"the server cannot list and watch selfsubjectaccessreviews: `kubectl api-resources"}},
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

	for _, args := range []string{ // conditions that hold at the start
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
		"\ntidings: condition=Ready was not reached within 1s: there are no services in namespace \"shop\"; 1 of 2 objects does not meet it: pod shop/web-2 (Ready=False)\n")
	start(t, watchArgs(t, server.url, "pods", "--timeout", "100ms")...).expect(t, 0, "── watched for ")
	s := start(t, watchArgs(t, server.url, "pods", "--until", "condition=Ready")...)
	s.err.await(t, "now waiting")
	s.interrupt()
	s.expect(t, 1, "tidings: interrupted before condition=Ready was reached: 1 of 2 objects does not meet it: pod shop/web-2 (Ready=False)\n")

	for _, c := range []struct{ args, waiting, absent string }{
		{"deployments", `0 deployments in namespace "shop"; now waiting until one exists`, `there are no deployments in namespace "shop"`},
		{"deployment/web", `now waiting until it exists`, `there is no deployment web in namespace "shop"`},
		{"services,nodes -A", `now waiting until each exists`, `there are no services in any namespace; there are no nodes`},
	} {
		args := append(strings.Fields(c.args), "--until", "create", "--timeout", "1s")
		start(t, watchArgs(t, server.url, args...)...).expect(t, 1, c.waiting, "create was not reached within 1s: "+c.absent+"\n")
	}

	const note = "no object has a value at {.status.fase} yet: correct the path if it is misspelt\n"
	start(t, watchArgs(t, server.url, "pods", "--until", "jsonpath=.status.fase=Running", "--timeout", "1s")...).expect(t, 1,
		note, "2 of 2 objects do not meet it: pod shop/web-1 (no value), pod shop/web-2 (no value)\n")
	for args, code := range map[string]int{
		"pods -q --until jsonpath=.status.fase": 1, "services --until jsonpath=.status.fase": 1, "pods --until jsonpath=.spec": 0,
	} {
		s := start(t, watchArgs(t, server.url, append(strings.Fields(args), "--timeout", "1s")...)...)
		s.expect(t, code)
		if strings.Contains(s.err.String(), "has a value at") {
			t.Errorf("%s: %s", args, s.err)
		}
	}

	server.create(&corev1.Secret{ObjectMeta: meta("login"), Data: map[string][]byte{"password": []byte("hunter2")}})
	s = start(t, watchArgs(t, server.url, "secrets", "--until", "jsonpath={.data.password}=3", "--timeout", "1s")...)
	s.expect(t, 1, "1 of 1 object does not meet it: secret shop/login (hidden)\n")
	if strings.Contains(s.err.String(), "aHVudGVy") {
		t.Errorf("the data is shown: %s", s.err)
	}
}

func TestWatchQuietly(t *testing.T) {
	t.Parallel()
	server := newCluster(t, widget(1))
	slow := server.Inject(apisim.Match{}, apisim.Delay(connectDelay))
	s := start(t, watchArgs(t, server.url, "widgets", "-q")...)
	s.out.await(t, "  widget shop/one  Ready, age ")
	slow.Lift()
	server.update(widget(2))
	s.out.await(t, "~ widget shop/one  spec.size 1 → 2\n")
	s.end(t)
	if s.err.String() != "" {
		t.Errorf("notes: %s", s.err)
	}
	start(t, watchArgs(t, server.url, "widgets", "-q", "--until", "jsonpath={.spec.size}=3", "--timeout", "100ms")...).
		expect(t, 1, "tidings: jsonpath={.spec.size}=3 was not reached within 100ms: 1 of 1 object does not meet it: widget shop/one (2)\n")
	s = start(t, watchArgs(t, server.url, "widgets", "-q", "-v", "--until", "create")...)
	s.expect(t, 0, "level=")
}

// brokenPipe fails as a file does without a reader, or with another error.
type brokenPipe struct{ err error }

func (b brokenPipe) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: b.err}
}

func TestWatchWithoutAReader(t *testing.T) {
	t.Parallel()
	server := newCluster(t, widget(1))
	for _, c := range []struct {
		args string
		err  error
		code int
		want string
	}{
		{"widgets -q", syscall.EPIPE, 0, ""},
		{"widgets -q", syscall.ENOSPC, 1, "tidings: write /dev/stdout: no space left on device\n"},
		{"widgets -q --until jsonpath={.spec.size}=2", syscall.EPIPE, 1, "tidings: the reader of the output went away before jsonpath={.spec.size}=2 was reached\n"},
	} {
		s := startBetween(t, strings.NewReader(""), brokenPipe{c.err}, watchArgs(t, server.url, strings.Fields(c.args)...)...)
		s.expect(t, c.code)
		if s.err.String() != c.want {
			t.Errorf("%s: it prints %q, want %q", c.args, s.err, c.want)
		}
	}
}

func TestWatchOfSeveralNamespaces(t *testing.T) {
	t.Parallel()
	other := pod("web-2", corev1.ConditionTrue)
	other.Namespace = "checkout"
	hidden := pod("web-3", corev1.ConditionTrue)
	hidden.Namespace = "hidden"
	server := newCluster(t, pod("web-1", corev1.ConditionTrue))
	for _, name := range []string{"checkout", "hidden"} {
		server.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	server.create(other, hidden)
	for _, args := range []string{"-n shop,checkout", "-n checkout -n shop -n checkout"} {
		s := start(t, watchArgs(t, server.url, append([]string{"pods,nodes"}, strings.Fields(args)...)...)...)
		s.err.await(t, "2 pods in the namespaces checkout, shop, 0 nodes; now watching")
		s.end(t)
		if out := s.out.String(); !strings.Contains(out, "shop/web-1") || !strings.Contains(out, "checkout/web-2") || strings.Contains(out, "hidden") {
			t.Errorf("%s: %s", args, out)
		}
	}
}

// TestWatchGoesOnWithoutForbiddenTypes, but does not wait for types that it cannot watch.
func TestWatchGoesOnWithoutForbiddenTypes(t *testing.T) {
	t.Parallel()
	server := newCluster(t, widget(1))
	forbidden := server.Inject(apisim.Match{Resource: "deployments.apps"}, apisim.Refuse(403, 0))
	s := start(t, watchArgs(t, server.url, "widgets,deployments", "-q")...)
	s.err.await(t, "tidings: deployments: the credentials of user \"ada\" may not list and watch deployments.apps")
	s.err.await(t, "; watching the other types\n")
	s.out.await(t, "  widget     shop/one  Ready, age ")
	server.update(widget(2))
	s.out.await(t, "spec.size 1 → 2\n")
	s.end(t)
	if n := strings.Count(s.err.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, s.err)
	}
	s = start(t, watchArgs(t, server.url, "widgets,deployments")...)
	s.err.await(t, `── 1 widget in namespace "shop"; now watching`)
	forbidden.Lift()
	s.err.await(t, "deployments: watching again")
	s.end(t)
	server.Inject(apisim.Match{Resource: "deployments.apps"}, apisim.Refuse(403, 0))
	fails(t, watchArgs(t, server.url, "widgets,deployments", "--until", "create"), "may not list and watch deployments.apps")
	server.Inject(apisim.Match{Resource: "nodes"}, apisim.Refuse(403, 0))
	fails(t, watchArgs(t, server.url, "nodes,deployments"), "may not list and watch deployments.apps", "may not list and watch nodes")
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
