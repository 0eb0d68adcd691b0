package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const matches = "the caches and the events of the handlers match the server"

func TestDemoEndsWithAComparison(t *testing.T) {
	t.Parallel()
	got := run(t, 0, "demo", "--for", "2s", "--pods", "150", "--churn", "200", "--seed", "7")
	for _, pattern := range []string{
		`── a simulated cluster with 150 pods at http://127\.0\.0\.1:\d+, created in \S+ with --seed 7\n`,
		`── 7 informers hold its \d+ objects after \S+; now 200 changes per second for 2s, Ctrl-C ends it sooner\n`,
		`\n\d\d:\d\d:\d\d\.\d{3} ~ \w+ +\S+/\S+ +\S+ \S+ → \S+`, // which changes come depends on the machine's speed
		`\n── after [2-9]\S*s\n +objects  added  updated  deleted\n`,
		`\n  pods +1[3-6]\d  `, `\n  lag +half within \S+, `, `\n  first sync \d+ objects in `, `\n  peak heap  [\d.]+ MiB`,
		`\n  comparison ` + matches + `: \d+ objects of 7 types\n$`,
	} {
		if !regexp.MustCompile(pattern).MatchString(got.out.String()) {
			t.Errorf("%s is not in:\n%s", pattern, got.out)
		}
	}
	changes := regexp.MustCompile(`\n  changes +(\d+) made, (\d+) seen\n`).FindStringSubmatch(got.out.String())
	if changes == nil || changes[1] != changes[2] || changes[1] == "0" {
		t.Errorf("changes made and seen: %q", changes)
	}
	if strings.Contains(got.out.String(), "\x1b") || got.err.String() != "" {
		t.Errorf("escape sequences without a terminal, or an error: %s", got.err)
	}
	quiet := run(t, 0, "demo", "--for", "200ms", "--pods", "1", "--churn", "0").out.String()
	if !strings.Contains(quiet, "changes    0 made, 0 seen") || !strings.Contains(quiet, matches) {
		t.Error(quiet)
	}
}

func TestDemoReactsToOtherClients(t *testing.T) {
	t.Parallel()
	s := start(t, "demo", "--for", "0", "--pods", "40", "--churn", "0", "--seed", "7")
	s.out.await(t, "changes per second until Ctrl-C")
	path, _, client := s.beside(t)
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
	s.out.await(t, "→ 30  status.unavailableReplicas")
	labels := []byte(`{"metadata":{"labels":{"team":"a"}}}`)
	if _, err := client.CoreV1().Nodes().Patch(ctx, "node-01", types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.out.await(t, "~ node       node-01")
	for _, name := range []string{"deploy", "Deployment", "deployments.v1.apps"} {
		got := start(t, "watch", name, "--kubeconfig", path, "--cache-dir", t.TempDir(), "--until", "condition=Available")
		got.expect(t, 0, `in namespace "shop"; now waiting for condition=Available`)
		if !strings.Contains(got.out.String(), "deployment shop/") {
			t.Errorf("%s: %s", name, got.out)
		}
	}
	s.end(t)
	if !strings.Contains(s.out.String(), matches) {
		t.Errorf("the caches differ:\n%s", s.out)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig was left behind: %v", err)
	}
}

func TestDemoWritesTheKubeconfigThatIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "it's mine")
	for range 2 { // the second time the file exists
		got := run(t, 0, "demo", "--for", "1ms", "--pods", "1", "--write-kubeconfig", path)
		if !strings.Contains(got.out.String(), `it'\''s mine'`+"\n") {
			t.Error(got.out)
		}
	}
}
