package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
)

// TestTheProgramOfTheGuide runs the program of docs/guides/scale.md until it has done its work, and
// ends it as a kubelet does: it hands over, releases its Lease, and succeeds.
func TestTheProgramOfTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(page)
	if code == nil {
		t.Fatal("the guide has no program")
	}
	c := listen(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": string(code[1]),
		"kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n" +
			"clusters: [{name: c, cluster: {server: \"" + c.url + "\"}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(dir, "main.go"))
	if message, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, message)
	}
	command := exec.Command(program, "-listen", "127.0.0.1:0")
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "POD_TEMPLATE_HASH=7c9d8f6b5d")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill() //nolint:errcheck // it may have ended
		command.Wait()         //nolint:errcheck // as above
	})
	c.awaitImages(t)
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr.Bytes())
	}
	if held, err := c.held(t.Context(), "default"); len(held) > 0 || err != nil {
		t.Errorf("the Leases %v are held; the error is %v", held, err)
	}
}

// awaitImages creates a Deployment, and waits for the ConfigMap that the program of the guide keeps
// beside it.
func (c *cluster) awaitImages(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	if _, err := c.Create(ctx, deployment); err != nil {
		t.Fatal(err)
	}
	factory, err := tidings.NewFactory(&rest.Config{Host: c.url, QPS: -1}, tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lists, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	for event := range lists.Events(ctx) {
		if event.Key() == "default/web-images" && event.Object().Data["web"] == "web:1" {
			return
		}
	}
	t.Fatal("the program writes no ConfigMap: ", ctx.Err())
}
