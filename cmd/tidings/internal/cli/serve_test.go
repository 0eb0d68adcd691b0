package cli_test

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	widgetFile = `apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: team}
spec: {size: 3}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team}
spec: {nodeName: node-1}
status: {phase: Running}
`
	widgetDefinitionFile = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true}]
`
)

// manifests writes a directory in which the definition comes after its object.
func manifests(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	textFile(t, directory, "a.yaml", widgetFile)
	textFile(t, directory, "b.yml", widgetDefinitionFile)
	textFile(t, directory, "notes.txt", "no object")
	return directory
}

func TestServe(t *testing.T) {
	t.Parallel()
	directory := manifests(t)
	another := textFile(t, t.TempDir(), "one.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	s := start(t, "serve", "--load", directory, "--load", another, "-v")
	path, host, client := s.beside(t)
	for _, part := range []string{"── an API server at " + host + ", with 5 objects loaded\n", "Ctrl-C ends it, and its objects are lost\n"} {
		if !strings.Contains(s.out.String(), part) {
			t.Errorf("%q is not in %s", part, s.out)
		}
	}
	if pod, err := client.CoreV1().Pods("team").Get(t.Context(), "web", metav1.GetOptions{}); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod: %v, %v", pod, err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "c", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	s.err.await(t, "method=GET uri=/api/v1/namespaces/team/pods/web status=200")
	got := run(t, 0, "watch", "widgets", "-n", "team", "--kubeconfig", path, "--cache-dir", t.TempDir(), "--until", "jsonpath={.spec.size}=3")
	if !strings.Contains(got.out.String(), "widget team/w") {
		t.Error(got.out)
	}
	taken := host[strings.LastIndexByte(host, ':'):]
	for _, command := range []string{"serve", "demo"} {
		fails(t, []string{command, "--listen", "127.0.0.1" + taken}, "cannot listen on 127.0.0.1"+taken+": ",
			"address already in use: choose another address with --listen, such as 127.0.0.1:8080")
	}
	s.end(t)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the kubeconfig was left behind: %v", err)
	}
}

func TestServeLoadsTheStandardInput(t *testing.T) {
	t.Parallel()
	list := `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}]}`
	s := startWith(t, strings.NewReader(list), "serve", "--load", "-")
	s.out.await(t, "with 1 object loaded\n")
	s.end(t)
	in, typing := io.Pipe()
	defer typing.Close() //nolint:errcheck // it is a pipe
	s = startWith(t, in, "serve", "--load", "-")
	if _, err := typing.Write([]byte("apiVersion: v1\n")); err != nil {
		t.Fatal(err)
	}
	s.end(t) // while it waits for more
	if s.out.String() != "" {
		t.Errorf("it prints %s", s.out)
	}
}

func TestServeLoadsWithoutKustomizations(t *testing.T) {
	t.Parallel()
	const kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n"
	directory := manifests(t)
	path := textFile(t, directory, "kustomization.yaml", kustomization)
	s := start(t, "serve", "--load", directory)
	s.out.await(t, "with 4 objects loaded\n")
	s.interrupt()
	s.expect(t, 0)
	want := "tidings: --load skips " + path + ": `kubectl kustomize " + directory + " | tidings serve --load -` loads what it builds\n"
	if s.err.String() != want {
		t.Errorf("it prints %q, want %q", s.err, want)
	}
	s = start(t, "serve", "--load", path)
	s.out.await(t, "with 0 objects loaded\n")
	s.interrupt()
	s.expect(t, 0, "loads what it builds\ntidings: --load "+path+": no object was added\n")
	other := textFile(t, t.TempDir(), "other.yaml", kustomization)
	fails(t, []string{"serve", "--load", other}, "no resource serves the kind Kustomization of kustomize.config.k8s.io/v1beta1: `kubectl kustomize DIRECTORY | ")
	comments := textFile(t, t.TempDir(), "comments.yaml", "# nothing\n")
	s = start(t, "serve", "--load", comments)
	s.out.await(t, "with 0 objects loaded\n")
	s.interrupt()
	s.expect(t, 0, "tidings: --load "+comments+": no object was added\n")
}

func TestServeUsers(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	file := textFile(t, directory, "users.yaml", `
- name: reader
  allow: [{verbs: [get, list, watch], resources: [pods], namespaces: [team]}]
- {name: nobody, token: given}
`)
	path := filepath.Join(directory, "kubeconfig")
	args := []string{
		"serve", "--load", manifests(t), "--users", file, "--users", "reader=get:widgets.example.com",
		"--users", "system:serviceaccount:team:web=*:deployments.apps/scale,pods:team,shop", "--write-kubeconfig", path,
	}
	s := start(t, args...)
	s.out.await(t, "── it has the contexts reader, nobody, system:serviceaccount:team:web, and tidings, who may do everything\n")
	s.out.await(t, "Ctrl-C")
	if !strings.Contains(s.out.String(), "an API server at https://127.0.0.1:") {
		t.Errorf("tokens need TLS: %s", s.out)
	}
	watching := func(args ...string) []string {
		return append([]string{"watch", "--kubeconfig", path, "--cache-dir", t.TempDir(), "--until", "create"}, args...)
	}
	run(t, 0, watching("pods", "-n", "team")...)
	run(t, 0, watching("pods", "-n", "team", "--context", "system:serviceaccount:team:web")...)
	run(t, 0, watching("widgets", "-A", "--context", "tidings")...)
	for _, args := range [][]string{
		watching("pods", "-A"), watching("widgets", "-n", "team"), watching("pods", "-n", "team", "--context", "nobody"),
	} {
		fails(t, args, "may not list and watch ")
	}
	fails(t, watching("pods", "--token", "wrong"), "does not accept the credentials")
	config, err := clientcmd.LoadFromFile(path)
	if err != nil || config.AuthInfos["nobody"].Token != "given" || config.AuthInfos["reader"].Token == config.AuthInfos["tidings"].Token {
		t.Errorf("the tokens: %v, %v", config, err)
	}
	s.end(t)
	before, err := os.Stat(path)
	linked := filepath.Join(directory, "linked")
	if err := cmp.Or(err, os.Rename(path, linked), os.Symlink(linked, path)); err != nil {
		t.Fatal(err)
	}
	s = start(t, args...) // over its own kubeconfig
	s.out.await(t, "Ctrl-C")
	if after, err := os.Lstat(linked); err != nil || os.SameFile(before, after) {
		t.Errorf("the kubeconfig was written in place, so that others can read a part of it: %v", err)
	}
	if link, err := os.Readlink(path); link != linked {
		t.Errorf("the link was replaced: %v", err)
	}
	s.end(t)
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	missing := filepath.Join(directory, "missing")
	widget := textFile(t, directory, "widget.yaml", widgetFile)
	broken := textFile(t, directory, "broken.yaml", "a: [")
	misspelt := textFile(t, directory, "misspelt.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodename: node-1}\n")
	definition := textFile(t, directory, "definition.yaml", widgetDefinitionFile)
	list := func(text string) string { return textFile(t, t.TempDir(), "users.yaml", text) }
	for _, c := range []struct{ args, parts []string }{
		{[]string{"--load", missing}, []string{"--load: no file matches " + missing, "or directories of such files"}},
		{[]string{"--load", broken}, []string{"--load: " + broken + ": document 1: ", "as `kubectl get -o yaml` prints them"}},
		{[]string{"--load", misspelt}, []string{misspelt + ": document 1 (Pod p)", `unknown field "spec.nodename"`}},
		{[]string{"--load", definition, "--load", definition}, []string{`"widgets.example.com" already exists`}},
		{[]string{"--load", widget}, []string{"(Widget w): no resource serves the kind Widget of example.com/v1: load its CustomResourceDefinition, too\n"}},
		{[]string{"--users", missing}, []string{"--users: ", missing + ": no such file or directory: name a file of users, or write NAME=VERBS"}},
		{[]string{"--users", widget}, []string{"--users: " + widget + ": ", "write a list of users, as in `- {name: reader"}},
		{[]string{"--users", list("[]")}, []string{" has no users: write a list"}},
		{[]string{"--users", list("[{token: x}]")}, []string{"user 1 has no name"}},
		{[]string{"--users", list("[{name: a, allow: [{verbs: [get]}]}]")}, []string{`user "a": a rule needs verbs and resources`}},
		{[]string{"--users", list("[{name: a, rights: []}]")}, []string{`unknown field "rights"`}},
		{[]string{"--users", list("[{name: a, token: t}, {name: b, token: t}]")}, []string{`--users: the user "b" needs a token of its own`}},
		{[]string{"--listen", "8080"}, []string{"cannot listen on 8080: ", "such as 127.0.0.1:8080"}},
		{[]string{"--write-kubeconfig", widget}, []string{widget + " exists and is no kubeconfig of tidings"}},
	} {
		fails(t, append([]string{"serve"}, c.args...), c.parts...)
	}
	if text, err := os.ReadFile(widget); err != nil || string(text) != widgetFile {
		t.Errorf("a file that is no kubeconfig was changed: %v", err)
	}
}

// made is the body of a request that creates an object.
const made = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"c-"}}`

type headers map[string]string

// TestServersAnswerNoWebPage sends requests of browsers for pages of other origins, and requests of
// programs.
func TestServersAnswerNoWebPage(t *testing.T) {
	t.Parallel()
	secret := textFile(t, t.TempDir(), "s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2}\n")
	s := start(t, "serve", "--load", secret)
	_, host, _ := s.beside(t)
	here := strings.TrimPrefix(host, "http://")
	_, port, _ := strings.Cut(here, ":")
	for name, c := range map[string]struct {
		body    string
		headers headers
		want    int
	}{
		"a program":                    {"", nil, 200},
		"by another name":              {"", headers{"Host": "localhost:" + port}, 200},
		"by another address":           {"", headers{"Host": "127.1.2.3"}, 200},
		"by IPv6":                      {"", headers{"Host": "[::1]:" + port}, 200},
		"its own page":                 {"", headers{"Origin": "http://" + here, "Sec-Fetch-Site": "same-origin"}, 200},
		"a name that was rebound":      {"", headers{"Host": "evil.example:" + port}, 421},
		"rebound, its own origin":      {"", headers{"Host": "evil.example:" + port, "Origin": "http://evil.example:" + port}, 421},
		"a name like ours":             {"", headers{"Host": "localhost.evil.example"}, 421},
		"another machine's address":    {"", headers{"Host": "192.0.2.1:" + port}, 421},
		"a page elsewhere":             {"", headers{"Origin": "https://evil.example"}, 403},
		"a page of another port":       {"", headers{"Origin": "http://localhost:1"}, 403},
		"a page without an origin":     {"", headers{"Origin": "null"}, 403},
		"a link from elsewhere":        {"", headers{"Sec-Fetch-Site": "cross-site"}, 403},
		"a program creates":            {made, headers{"Content-Type": "application/json"}, 201},
		"a page creates":               {made, headers{"Content-Type": "application/json", "Origin": "https://evil.example"}, 403},
		"no content type":              {made, headers{}, 415},
		"a content type of every page": {made, headers{"Content-Type": "Text/Plain; charset=utf-8"}, 415},
		"a form":                       {made, headers{"Content-Type": "application/x-www-form-urlencoded"}, 415},
	} {
		method, path := http.MethodGet, "/api/v1/namespaces/default/secrets/s"
		if c.body != "" {
			method, path = http.MethodPost, "/api/v1/namespaces/default/configmaps"
		}
		req, err := http.NewRequestWithContext(t.Context(), method, host+path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for header, value := range c.headers {
			req.Header.Set(header, value)
		}
		if host := c.headers["Host"]; host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // it was read
		if err != nil || resp.StatusCode != c.want || (c.want >= 400) != strings.Contains(string(body), `"kind":"Status"`) {
			t.Errorf("%s: %d, want %d: %s, %v", name, resp.StatusCode, c.want, body, err)
		}
	}
	s.end(t)
	if s.err.String() != "" {
		t.Errorf("a warning about an address that nobody else reaches: %s", s.err)
	}
}

// TestServersWarnWhereOthersReachThem: with their true address.
func TestServersWarnWhereOthersReachThem(t *testing.T) {
	t.Parallel()
	s := start(t, "serve", "--listen", "0.0.0.0:0")
	_, host, _ := s.beside(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(host, "http://"), ":")
	if want := ":" + port + " (" + host + " from this machine), with "; !strings.Contains(s.out.String(), want) || strings.Contains(s.out.String(), "at http://localhost") {
		t.Errorf("%q is not in %s", want, s.out)
	}
	const warning = "may read and write everything there, without credentials: --listen 127.0.0.1:0"
	s.interrupt()
	s.expect(t, 0, warning)
	start(t, "demo", "--for", "100ms", "--pods", "1", "--churn", "0", "--listen", "0.0.0.0:0").expect(t, 0, warning)
}
