package apisim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// testOfTest stands for a test that is looked at.
type testOfTest struct {
	cleanups []func()
	errors   []string
	logs     []string
	fatal    bool
}

func (t *testOfTest) Helper()          {}
func (t *testOfTest) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *testOfTest) Failed() bool     { return len(t.errors) > 0 }
func (t *testOfTest) Logf(format string, args ...any) {
	t.logs = append(t.logs, fmt.Sprintf(format, args...))
}
func (t *testOfTest) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}
func (t *testOfTest) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	t.fatal = true
}

func (t *testOfTest) end() {
	for i := range t.cleanups {
		t.cleanups[len(t.cleanups)-1-i]()
	}
}

func clientOf(t *testing.T, s *Server) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestStartLoadsFiles(t *testing.T) {
	for name, files := range map[string][]string{"directory": {"testdata"}, "pattern": {"testdata/*.y*ml"}, "files": {"testdata/shop.yaml", "testdata/widgets.yml"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Start(t, files...)
				client := clientOf(t, s)
				web, err := client.AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
				if err != nil || web.UID != "11111111-2222-3333-4444-555555555555" || web.CreationTimestamp.UTC().Year() != 1999 || web.Generation != 4 || web.Status.ReadyReplicas != 1 || *web.Spec.Replicas != 2 {
					t.Errorf("web is %+v, %v", web, err)
				}
				if number, err := parseVersion(web.ResourceVersion); err != nil || number > 100 {
					t.Errorf("its version is %s", web.ResourceVersion)
				}
				if c, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "settings", metav1.GetOptions{}); err != nil || c.Data["colour"] != "red" || c.UID == "" {
					t.Errorf("settings are %+v, %v", c, err)
				}
				if n, err := client.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{}); err != nil || n.Status.Phase != corev1.NamespaceActive {
					t.Errorf("the namespace that was needed is %+v, %v", n, err)
				}
				if n, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil || n.Labels["team"] != "a" || n.Status.Phase != corev1.NamespaceActive {
					t.Errorf("the namespace that was there is %+v, %v", n, err)
				}
				if _, err := s.Get(t.Context(), widgetsV1, "shop", "w"); err != nil {
					t.Errorf("the custom object: %v", err)
				}
			})
		})
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	s := Start(t)
	dir := t.TempDir()
	for text, says := range map[string]string{
		"kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {nodename: n}": `document 1 (Pod a): Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.nodename"`,
		"# nothing\n---\nkind: Sock\napiVersion: example.com/v1":              "(Sock without a name): no resource serves the kind Sock of example.com/v1: ",
		"kind: Pod\nmetadata: {name: a}":                                      "document 1 (Pod a): it has no apiVersion",
		"apiVersion: v1\nmetadata: {name: a}":                                 "document 1: Object 'Kind' is missing",
		"apiVersion: v1\nkind: List\nitems: [{kind: Pod}]":                    "document 1 (Pod without a name): it has no apiVersion",
		"# nothing\n---\n- a\n- b":                                            "document 2: ",
		"hello":                                                               "document 1: ",
		"kind: Pod\napiVersion: v1\nmetadata: {name: A_}":                     "document 1 (Pod A_): Pod \"A_\" is invalid",
		"a: b: c": "document 1: ",
		"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}": `document 2 (ConfigMap a): configmaps "a" already exists`,
	} {
		file := filepath.Join(dir, "x.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Load(file); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
		if err := s.LoadFrom("text", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "apisim: text: document ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := s.Load(filepath.Join(dir, "none*.yaml")); err == nil || !strings.Contains(err.Error(), "no file matches") {
		t.Errorf("no such file: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(empty); err == nil || !strings.Contains(err.Error(), "no file below "+empty+" ends in .yaml, .yml or .json") {
		t.Errorf("a directory without files: %v", err)
	}
	if err := s.Load("[x"); err == nil || !strings.Contains(err.Error(), "pattern") {
		t.Errorf("a bad pattern: %v", err)
	}
}

func TestStartFindsLeakedWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, leaks := range []bool{false, true} {
			looked := &testOfTest{}
			s := Options{Seed: 7}.Start(looked)
			ctx, cancel := context.WithCancel(t.Context())
			w, err := clientOf(t, s).CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if running := s.Watches(); len(running) != 1 || running[0].Resource.Resource != "pods" {
				t.Errorf("running are %v", running)
			}
			if !leaks {
				go func() {
					time.Sleep(leakGrace / 2)
					cancel()
				}()
			}
			looked.end()
			cancel()
			w.Stop()
			if !leaks && len(looked.errors) > 0 || leaks && (len(looked.errors) != 1 || !strings.Contains(looked.errors[0], "leaves a watch running") || !strings.Contains(looked.errors[0], "watch pods")) {
				t.Errorf("leaks: %v, errors %q", leaks, looked.errors)
			}
			if seed := strings.Contains(fmt.Sprint(looked.logs), "Options{Seed: 7}"); seed != leaks {
				t.Errorf("leaks: %v, logs %q", leaks, looked.logs)
			}
			if _, err := s.Listen("127.0.0.1:0"); !errors.Is(err, errClosed) {
				t.Errorf("the server is not closed: %v", err)
			}
		}
	})
}

// TestStartNamesFaultsThatMetNothing asks for a line about a match that is misspelt.
func TestStartNamesFaultsThatMetNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked := &testOfTest{}
		s := Start(looked)
		s.Inject(Match{Verb: "list", Resource: "secrets"}, Delay(0))
		s.Inject(Match{Verb: "list", Resource: "secret"}, Refuse(429, 0), Delay(time.Second)).Lift()
		if _, err := clientOf(t, s).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		looked.end()
		if logs := fmt.Sprint(looked.logs); len(looked.logs) != 1 || !strings.Contains(logs, "of verb=list,resource=secret") || !strings.Contains(logs, "[Refuse(429) Delay(1s)]") {
			t.Errorf("logs %q", looked.logs)
		}
		if len(looked.errors) > 0 {
			t.Errorf("errors %q", looked.errors)
		}
	})
}

func TestStartThatFails(t *testing.T) {
	for name, start := range map[string]func(t TB){
		"options": func(t TB) { Options{HistoryLimit: -1}.Start(t) },
		"files":   func(t TB) { Start(t, "nosuch.yaml") },
	} {
		looked := &testOfTest{}
		start(looked)
		looked.end()
		if !looked.fatal || len(looked.errors) != 1 {
			t.Errorf("%s: errors %q", name, looked.errors)
		}
	}
}

func TestExpectRequests(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		if _, _, err := b.list(metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
		looked := &testOfTest{}
		b.server.ExpectRequests(looked, Match{Verb: "list"}, 1)
		b.server.ExpectRequests(looked, Match{Verb: "watch"}, 0)
		if len(looked.errors) != 0 {
			b.Errorf("errors %q", looked.errors)
		}
		b.server.ExpectRequests(looked, Match{Verb: "list"}, 2)
		if len(looked.errors) != 1 || !strings.Contains(looked.errors[0], "list configmaps namespace=default 200") {
			b.Errorf("errors %q", looked.errors)
		}
	})
}
