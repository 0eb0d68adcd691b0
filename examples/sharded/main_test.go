package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
)

// maxWait bounds the time until the replicas have done something.
const maxWait = 2 * time.Minute

// startReplica starts the program, and waits until it answers requests.
func startReplica(t *testing.T, program, url, identity string) *exec.Cmd {
	t.Helper()
	command := exec.Command(program, "-server", url, "-identity", identity, "-lease", "5s")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill() //nolint:errcheck // it may have ended
		command.Wait()         //nolint:errcheck // as above
	})
	lines := bufio.NewReader(stderr)
	for line := ""; !strings.Contains(line, "requests are answered"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("replica %s has ended: %s", identity, line)
		}
	}
	go io.Copy(io.Discard, lines) //nolint:errcheck // the program ends
	return command
}

// changeAll changes each ConfigMap, and waits until one of the replicas has written its checksum.
func changeAll(t *testing.T, url, mark string, replicas ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	config := &rest.Config{Host: url, QPS: -1}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Labels: selector})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"data":{"asked":"` + mark + `"}}`)
	left := map[string]bool{} // keys
	for i := range teams * perTeam {
		_, err := client.CoreV1().ConfigMaps(teamOf(i)).Patch(
			ctx, settingsOf(i), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		left[teamOf(i)+"/"+settingsOf(i)] = true
	}
	seen := map[string]bool{} // the replicas that have written
	for event := range informer.Events(ctx) {
		c := event.Object()
		by := c.Annotations[byAnnotation]
		if c.Data["asked"] == mark && c.Annotations[sumAnnotation] == checksum(c) && slices.Contains(replicas, by) {
			delete(left, event.Key())
			seen[by] = true
		}
		if len(left) == 0 {
			break
		}
	}
	if len(left) > 0 || len(seen) < len(replicas) {
		t.Fatalf("%d ConfigMaps have no checksum by %v, and %v have written", len(left), replicas, seen)
	}
}

// TestAReplicaIsKilled runs three replicas, which divide the ConfigMaps. One is killed: the others have
// all of them. They end as a kubelet ends them.
func TestAReplicaIsKilled(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sharded")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "-ldflags=-s -w", ".")
	if message, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, bytes.TrimSpace(message))
	}
	c := listen(t)
	if err := c.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := startReplica(t, program, c.url, "a")
	others := []*exec.Cmd{startReplica(t, program, c.url, "b"), startReplica(t, program, c.url, "c")}
	c.awaitOwners(t, 3)
	changeAll(t, c.url, "before", "a", "b", "c")
	if err := a.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	changeAll(t, c.url, "after", "b", "c")
	for _, replica := range others {
		if err := replica.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for _, replica := range others {
		if err := replica.Wait(); err != nil {
			t.Error(err)
		}
	}
	if held, err := c.held(t.Context(), "default"); len(held) > 1 || err != nil { // that of a is left
		t.Errorf("the Leases %v are held; the error is %v", held, err)
	}
}
