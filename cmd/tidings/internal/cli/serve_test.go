package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings/cmd/tidings/internal/cli"
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

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// textFile writes a file and returns its path.
func textFile(t *testing.T, directory, name, text string) string {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// manifests writes a directory in which the definition comes after its object.
func manifests(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	textFile(t, directory, "a.yaml", widgetFile)
	textFile(t, directory, "b.yml", widgetDefinitionFile)
	textFile(t, directory, "notes.txt", "no object")
	return directory
}

// service is a `tidings serve` that runs.
type service struct {
	*session
	typed      *kubernetes.Clientset
	dynamic    *dynamic.DynamicClient
	config     *rest.Config
	kubeconfig string
}

func served(t *testing.T, args ...string) *service {
	t.Helper()
	s := &service{session: start(t, append([]string{"serve"}, args...)...)}
	s.out.await(t, "Ctrl-C ends it")
	path := regexp.MustCompile(`export KUBECONFIG=(\S+)\n`).FindStringSubmatch(s.out.String())
	if path == nil {
		t.Fatalf("no kubeconfig is named: %s", s.out)
	}
	s.kubeconfig = path[1]
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	s.config, s.typed, s.dynamic = config, kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	return s
}

func TestServeLoads(t *testing.T) {
	t.Parallel()
	directory := manifests(t)
	another := textFile(t, t.TempDir(), "one.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	s := served(t, "--load", directory, "--load", another)
	for _, part := range []string{"── an API server at http://127.0.0.1:", ", with 5 objects loaded\n", "Ctrl-C ends it, and nothing is kept\n"} {
		if !strings.Contains(s.out.String(), part) {
			t.Errorf("%q is not in %s", part, s.out)
		}
	}
	if !strings.Contains(s.out.String(), "at "+s.config.Host+", with") {
		t.Errorf("the kubeconfig is of %s: %s", s.config.Host, s.out)
	}
	ctx := t.Context()
	if pod, err := s.typed.CoreV1().Pods("team").Get(ctx, "web", metav1.GetOptions{}); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod: %v, %v", pod, err)
	}
	if w, err := s.dynamic.Resource(widgets).Namespace("team").Get(ctx, "w", metav1.GetOptions{}); err != nil {
		t.Errorf("the widget: %v, %v", w, err)
	}
	if _, err := s.typed.CoreV1().ConfigMaps("default").Get(ctx, "c", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	s.end(t)
	if _, err := os.Stat(s.kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the kubeconfig was left behind: %v", err)
	}
}

func TestServeLoadsTheStandardInput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out, code := newStream(), make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, []string{"serve", "--load", "-"}, cli.Streams{In: strings.NewReader(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}]}`), Out: out, Err: new(bytes.Buffer)})
	}()
	out.await(t, "with 1 object loaded\n")
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestServeEndsWhileItWaitsForInput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in, typing := io.Pipe()
	defer typing.Close()
	out, code := newStream(), make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, []string{"serve", "--load", "-"}, cli.Streams{In: in, Out: out, Err: out})
	}()
	if _, err := typing.Write([]byte("apiVersion: v1\n")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := <-code; got != 0 || out.String() != "" {
		t.Errorf("exit code %d: %s", got, out)
	}
}

func TestServeIsWatched(t *testing.T) {
	t.Parallel()
	s := served(t, "--load", manifests(t))
	got := run(t.Context(), "watch", "widgets", "-n", "team", "--kubeconfig", s.kubeconfig, "--cache-dir", t.TempDir(), "--until", "jsonpath={.spec.size}=3")
	got.expect(t, 0)
	if !strings.Contains(got.out, "widget team/w") {
		t.Error(got.out)
	}
	s.end(t)
}

func TestServeListens(t *testing.T) {
	t.Parallel()
	s := served(t, "--listen", "0.0.0.0:0", "-v")
	if !strings.HasPrefix(s.config.Host, "http://localhost:") {
		t.Errorf("the address is %s", s.config.Host)
	}
	if _, err := s.typed.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	s.err.await(t, "method=GET uri=/api/v1/nodes status=200")
	taken := s.config.Host[strings.LastIndexByte(s.config.Host, ':'):]
	run(t.Context(), "serve", "--listen", taken).expect(t, 1, "cannot listen on "+taken+": ", "address already in use: choose another address with --listen, such as 127.0.0.1:8080")
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
	for _, c := range []struct {
		args  []string
		parts []string
	}{
		{[]string{"--load", missing}, []string{"--load: no file matches " + missing, "or directories of such"}},
		{[]string{"--load", broken}, []string{"--load: " + broken + ": document 1: ", "as `kubectl get -o yaml` prints them"}},
		{[]string{"--load", misspelt}, []string{misspelt + ": document 1 (Pod p)", `unknown field "spec.nodename"`}},
		{[]string{"--load", definition, "--load", definition}, []string{`"widgets.example.com" already exists`}},
		{[]string{"--load", widget}, []string{"(Widget w): no resource serves the kind Widget of example.com/v1: load its CustomResourceDefinition too\n"}},
		{[]string{"--listen", "8080"}, []string{"cannot listen on 8080: ", "such as 127.0.0.1:8080"}},
		{[]string{"--write-kubeconfig", widget}, []string{widget + " exists and is not one that tidings has written"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			run(t.Context(), append([]string{"serve"}, c.args...)...).expect(t, 1, c.parts...)
		})
	}
}
