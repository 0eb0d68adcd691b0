package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func TestDemoEndsWithCacheAndServerEqual(t *testing.T) {
	t.Parallel()
	got := run(t.Context(), "demo", "--for", "2s", "--pods", "150", "--churn", "200", "--seed", "7")
	if got.code != 0 || got.err != "" {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	for _, pattern := range []string{
		`── a made-up cluster of 150 pods at http://127\.0\.0\.1:\d+, built in \S+ from seed 7\n`,
		`── 8 informers hold its \d+ objects after \S+; now 200 changes a second for 2s, Ctrl-C ends it sooner\n`,
		`~ pod +\S+/\S+ +status\.phase Pending → Running`,
		`\n── after [2-9]\S*s\n +objects  added  updated  deleted\n`,
		`\n  pods +1[3-6]\d  `,
		`\n  lag +\S+ median, `,
		`\n  first sync \d+ objects in `,
		`\n  peak heap  \d+ MB`,
		`\n  agreement  the caches equal the server, and so does what the handlers were told: \d+ objects of 8 types\n$`,
	} {
		if !regexp.MustCompile(pattern).MatchString(got.out) {
			t.Errorf("%s is not in:\n%s", pattern, lastLines(got.out, 30))
		}
	}
	changes := regexp.MustCompile(`\n  changes +(\d+) made, (\d+) seen\n`).FindStringSubmatch(got.out)
	if changes == nil || changes[1] != changes[2] || changes[1] == "0" {
		t.Errorf("changes made and seen: %q", changes)
	}
	if strings.Contains(got.out, "\x1b") {
		t.Error("escape sequences without a terminal")
	}
}

func TestDemoWithoutChanges(t *testing.T) {
	t.Parallel()
	got := run(t.Context(), "demo", "--for", "200ms", "--pods", "1", "--churn", "0")
	if got.code != 0 || !strings.Contains(got.out, "changes    0 made, 0 seen") || !strings.Contains(got.out, "the caches equal the server") {
		t.Errorf("exit code %d: %s%s", got.code, got.err, got.out)
	}
}

func TestDemoEndsWithCtrlC(t *testing.T) {
	t.Parallel()
	s := start(t, "demo", "--for", "0", "--pods", "50", "--churn", "100")
	s.out.await(t, "now 100 changes a second until Ctrl-C")
	s.out.await(t, " ~ ")
	s.end(t)
	if !strings.Contains(s.out.String(), "the caches equal the server") {
		t.Errorf("no comparison after Ctrl-C:\n%s", lastLines(s.out.String(), 20))
	}
}

// beside returns a client of a demo that runs, by the kubeconfig that it names.
func beside(t *testing.T, s *session) (*kubernetes.Clientset, string) {
	t.Helper()
	s.out.await(t, "changes a second")
	path := regexp.MustCompile(`export KUBECONFIG=(\S+)\n`).FindStringSubmatch(s.out.String())
	if path == nil {
		t.Fatalf("no kubeconfig is named: %s", s.out)
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: path[1]}, nil)
	config, err := loader.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if namespace, _, err := loader.Namespace(); err != nil || namespace != "shop" {
		t.Errorf("the namespace is %q, %v", namespace, err)
	}
	return kubernetes.NewForConfigOrDie(config), path[1]
}

func TestDemoBearsWhatOthersWrite(t *testing.T) {
	t.Parallel()
	s := start(t, "demo", "--for", "0", "--pods", "40", "--churn", "0", "--seed", "7")
	client, path := beside(t, s)
	ctx := t.Context()
	pods, err := client.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deleted := pods.Items[0]
	if err := client.CoreV1().Pods("shop").Delete(ctx, deleted.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.out.await(t, "- pod        shop/"+deleted.Name)
	deployments, err := client.AppsV1().Deployments("shop").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scaled := deployments.Items[0].Name
	if _, err := client.AppsV1().Deployments("shop").Patch(ctx, scaled, types.MergePatchType, []byte(`{"spec":{"replicas":30}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.out.await(t, "spec.replicas ")
	s.out.await(t, "→ 30  ")
	labels := []byte(`{"metadata":{"labels":{"team":"a"}}}`)
	if _, err := client.CoreV1().Nodes().Patch(ctx, "node-01", types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.out.await(t, "~ node       node-01")
	s.end(t)
	if !strings.Contains(s.out.String(), "the caches equal the server") {
		t.Errorf("no agreement:\n%s", lastLines(s.out.String(), 20))
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the kubeconfig was left behind: %v", err)
	}
}

func TestDemoHasACustomType(t *testing.T) {
	t.Parallel()
	s := start(t, "demo", "--for", "0", "--pods", "40", "--churn", "0", "--seed", "7")
	_, path := beside(t, s)
	for _, name := range []string{"databases", "database", "db", "Database", "databases.fleet.example", "databases.v1.fleet.example"} {
		got := run(t.Context(), "watch", name, "--kubeconfig", path, "--cache-dir", t.TempDir(), "--until", "condition=Ready")
		got.expect(t, 0, `in namespace "shop"; now waiting for condition=Ready`)
		if !strings.Contains(got.out, "database shop/") {
			t.Errorf("%s: %s", name, got.out)
		}
	}
	s.end(t)
}

func TestDemoWritesTheKubeconfigThatIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "it's mine")
	for range 2 { // the second time it is there
		got := run(t.Context(), "demo", "--for", "1ms", "--pods", "1", "--write-kubeconfig", path)
		if got.code != 0 || !strings.Contains(got.out, `it'\''s mine'`+"\n") {
			t.Fatalf("exit code %d: %s%s", got.code, got.err, got.out)
		}
	}
	others := kubeconfig(t, "http://127.0.0.1:9", "x")
	before, err := os.ReadFile(others)
	if err != nil {
		t.Fatal(err)
	}
	refused := run(t.Context(), "demo", "--for", "1ms", "--pods", "1", "--write-kubeconfig", others)
	if refused.out != "" {
		t.Errorf("a cluster was built for nothing: %s", refused.out)
	}
	refused.expect(t, 1, others+" exists and is not one that tidings has written: name another file with --write-kubeconfig")
	if after, err := os.ReadFile(others); err != nil || string(after) != string(before) {
		t.Errorf("a kubeconfig of somebody else was changed: %v", err)
	}
	run(t.Context(), "demo", "--for", "1ms", "--listen", "nowhere").expect(t, 1, "cannot listen on nowhere", "--listen")
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
