package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
)

// maxWait bounds the time until a line of the program, or its end.
const maxWait = 2 * time.Minute

// build builds the program, with the race detector if the test has it.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sharded")
	arguments := []string{"build", "-o", program, "-ldflags=-s -w"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test does not know how it was built")
	}
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		arguments = append(arguments, "-race")
	}
	command := exec.CommandContext(t.Context(), "go", append(arguments, ".")...)
	if message, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, bytes.TrimSpace(message))
	}
	return program
}

// run is the program while it runs.
type run struct {
	*testing.T
	command *exec.Cmd
	lines   chan string // of the standard output
	stderr  chan string // all of it, once the replicas have ended too: they have the same one
}

func start(t *testing.T, program string) *run {
	t.Helper()
	r := &run{
		T: t, command: exec.Command(program, "-lease", "10s"),
		lines: make(chan string, 10000), stderr: make(chan string, 1),
	}
	stdout, err := r.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := r.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.command.Process.Kill() //nolint:errcheck // it may have ended
		r.command.Wait()         //nolint:errcheck // as above
	})
	go func() {
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			r.lines <- scanner.Text()
		}
		close(r.lines)
	}()
	go func() {
		text, _ := io.ReadAll(stderr) //nolint:errcheck // its end is an end
		r.stderr <- string(text)
	}()
	return r
}

// expect reads lines until one matches, and returns its submatches.
func (r *run) expect(pattern string) []string {
	r.Helper()
	deadline := time.After(maxWait)
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.Fatalf("it ended before a line that matches %q: %s", pattern, <-r.stderr)
			}
			r.Log(line)
			if match := regexp.MustCompile(pattern).FindStringSubmatch(line); match != nil {
				return match
			}
		case <-deadline:
			r.Fatalf("it prints no line that matches %q", pattern)
		}
	}
}

// errors waits until the program and its replicas have ended, and returns their error output.
func (r *run) errors() string {
	r.Helper()
	select {
	case text := <-r.stderr:
		return text
	case <-time.After(maxWait):
		r.Fatal("processes still run")
		return ""
	}
}

// changeAll changes each ConfigMap, and waits until one of the replicas has written its checksum.
func (r *run) changeAll(url, mark string, replicas ...string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), maxWait)
	defer cancel()
	config := &rest.Config{Host: url, QPS: -1}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		r.Fatal(err)
	}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		r.Fatal(err)
	}
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Labels: selector})
	if err != nil {
		r.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		r.Fatal(err)
	}
	patch := []byte(`{"data":{"asked":"` + mark + `"}}`)
	left := map[string]bool{} // keys
	for i := range teams * perTeam {
		_, err := client.CoreV1().ConfigMaps(teamOf(i)).Patch(
			ctx, settingsOf(i), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			r.Fatal(err)
		}
		left[teamOf(i)+"/"+settingsOf(i)] = true
	}
	for event := range informer.Events(ctx) {
		c := event.Object()
		if c.Data["asked"] == mark && c.Annotations[sumAnnotation] == checksum(c) &&
			slices.Contains(replicas, c.Annotations[byAnnotation]) {
			delete(left, event.Key())
		}
		if len(left) == 0 {
			return
		}
	}
	r.Fatalf("%d ConfigMaps have no checksum by %v: %v", len(left), replicas, ctx.Err())
}

// TestTheDemonstration runs the program as its user does.
func TestTheDemonstration(t *testing.T) {
	program := build(t)
	t.Run("a replica is killed", func(t *testing.T) { testKilledReplica(t, program) })
	t.Run("the parent is killed", func(t *testing.T) { testKilledParent(t, program) })
}

func testKilledReplica(t *testing.T, program string) {
	r := start(t, program)
	url := r.expect(`API server is at (\S+)\. It has 400 ConfigMaps`)[1]
	pid := r.expect(`Replica a is process (\d+), with pages at http://127`)[1]
	const even = `(?:7\d|8\d|9\d) slots, \d+ objects, \d+ calls \| `
	r.expect(`a ` + even + `b ` + even + `c ` + even + `256 of 256 slots covered`)
	r.changeAll(url, "before", "a", "b", "c")
	killed, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(killed)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.expect(`replica a has ended \(signal: killed\)`)
	r.expect(` of 256 slots covered, [1-9]\d* wait for the Lease of a`)
	r.expect(`a → [bc]: slots `)
	r.expect(`all slots are covered again`)
	line := r.expect(`  b (\d+) slots, .* \| c (\d+) slots, .* 256 of 256 slots covered`)
	b, err := strconv.Atoi(line[1])
	if err != nil {
		t.Fatal(err)
	}
	if c, err := strconv.Atoi(line[2]); err != nil || b+c != 256 {
		t.Errorf("b and c have %d and %d slots; the error is %v", b, c, err)
	}
	r.changeAll(url, "after", "b", "c")
	if err := r.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.expect(`replica b is asked to end`)
	r.expect(`all Leases are released`)
	if text := r.errors(); strings.Contains(text, "sharded: ") {
		t.Error(text)
	}
	if err := r.command.Wait(); err != nil {
		t.Error(err)
	}
}

// testKilledParent kills the parent, which can ask nobody to end. The replicas end nonetheless.
func testKilledParent(t *testing.T, program string) {
	r := start(t, program)
	r.expect(`256 of 256 slots covered`)
	if err := r.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.errors()
}
