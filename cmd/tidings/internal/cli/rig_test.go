package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/cli"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // as main does
	os.Exit(m.Run())
}

// stream is an output that a test waits for.
type stream struct {
	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{}
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.grew <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the output contains a text.
func (s *stream) await(t *testing.T, part string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !strings.Contains(s.String(), part) {
		select {
		case <-s.grew:
		case <-late:
			t.Fatalf("%q did not come: %s", part, s)
		}
	}
}

// session is a running command.
type session struct {
	out, err  *stream
	interrupt context.CancelFunc
	code      chan int
}

func start(t *testing.T, args ...string) *session {
	return startWith(t, strings.NewReader(""), args...)
}

func startWith(t *testing.T, in io.Reader, args ...string) *session {
	out := &stream{grew: make(chan struct{}, 1)}
	s := startBetween(t, in, out, args...)
	s.out = out
	return s
}

// startBetween starts a command with streams of the test.
func startBetween(t *testing.T, in io.Reader, out io.Writer, args ...string) *session {
	ctx, cancel := context.WithCancel(t.Context())
	s := &session{err: &stream{grew: make(chan struct{}, 1)}, interrupt: cancel, code: make(chan int, 1)}
	go func() { s.code <- cli.Run(ctx, args, cli.Streams{In: in, Out: out, Err: s.err}) }()
	return s
}

// end interrupts the command as Ctrl-C does and expects success.
func (s *session) end(t *testing.T) {
	t.Helper()
	s.interrupt()
	s.expect(t, 0)
}

// expect waits for the end of the command and checks its exit code and its error stream.
func (s *session) expect(t *testing.T, code int, parts ...string) {
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

// run runs a command to its end.
func run(t *testing.T, code int, args ...string) *session {
	t.Helper()
	s := start(t, args...)
	s.expect(t, code)
	return s
}

// fails runs a command that fails with one line on the error stream.
func fails(t *testing.T, args []string, parts ...string) {
	t.Helper()
	s := start(t, args...)
	s.expect(t, 1, parts...)
	said := regexp.MustCompile(`(?m)^asking .* for its types …\n`).ReplaceAllString(s.err.String(), "")
	if strings.Count(said, "\n") != 1 || strings.Contains(said, "secret-token") {
		t.Errorf("not one line, or with the token: %s", said)
	}
}

// textFile writes a file and returns its path.
func textFile(t *testing.T, directory, name, text string) string {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kubeconfig writes a kubeconfig with a context of the namespace shop for each server.
func kubeconfig(t *testing.T, servers ...string) string {
	t.Helper()
	contexts, clusters := "", ""
	for i, server := range servers {
		name := []string{"staging", "production"}[i]
		contexts += fmt.Sprintf("- {name: %s, context: {cluster: %[1]s, user: ada, namespace: shop}}\n", name)
		clusters += fmt.Sprintf("- {name: %s, cluster: {server: %q}}\n", name, server)
	}
	return textFile(t, t.TempDir(), "config", "apiVersion: v1\nkind: Config\ncurrent-context: staging\ncontexts:\n"+
		contexts+"clusters:\n"+clusters+"users: [{name: ada, user: {token: secret-token}}]\n")
}

// watchArgs returns the arguments of a watch of a server.
func watchArgs(t *testing.T, url string, args ...string) []string {
	t.Helper()
	return append([]string{"watch", "--kubeconfig", kubeconfig(t, url), "--cache-dir", t.TempDir()}, args...)
}

// cluster is an API server with the namespace shop and the type widgets.
type cluster struct {
	*apisim.Server
	t   *testing.T
	url string
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	c := &cluster{Server: apisim.Start(t), t: t}
	err := c.Register(apisim.Resource{
		Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", ShortNames: []string{"wdg"}, Namespaced: true,
	})
	if err == nil {
		c.url, err = c.Listen("127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	c.create(append([]runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}, objects...)...)
	return c
}

func (c *cluster) create(objects ...runtime.Object) {
	c.t.Helper()
	for _, obj := range objects {
		if _, err := c.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) update(objects ...runtime.Object) {
	c.t.Helper()
	for _, obj := range objects {
		if _, err := c.Update(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) remove(resource, name string) {
	c.t.Helper()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: resource}
	if _, err := c.Delete(c.t.Context(), gvr, "shop", name); err != nil {
		c.t.Fatal(err)
	}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}
}

func pod(name string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: meta(name), Status: corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
	}}
}

// beside returns the path of the kubeconfig that a running server has written, its address and a
// client.
func (s *session) beside(t *testing.T) (path, host string, client *kubernetes.Clientset) {
	t.Helper()
	s.out.await(t, "Ctrl-C")
	match := regexp.MustCompile(`export KUBECONFIG=(\S+)\n`).FindStringSubmatch(s.out.String())
	if match == nil {
		t.Fatalf("no kubeconfig is named: %s", s.out)
	}
	config, err := clientcmd.BuildConfigFromFlags("", match[1])
	if err != nil {
		t.Fatal(err)
	}
	return match[1], config.Host, kubernetes.NewForConfigOrDie(config)
}
