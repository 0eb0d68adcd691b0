//go:build unix

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/flight"
)

// recordArgs returns the arguments of a recording of a server, which goes to a directory.
func recordArgs(t *testing.T, url, dir string, args ...string) []string {
	t.Helper()
	return append([]string{"record", "--kubeconfig", kubeconfig(t, url), "--cache-dir", t.TempDir(), "--dir", dir}, args...)
}

// TestRecord records pods and Secrets. A signal asks for recordings until one has an update. The
// last recording is replayed.
func TestRecord(t *testing.T) {
	const planted = "planted"
	server := newCluster(t, pod("web", corev1.ConditionFalse),
		&corev1.Secret{ObjectMeta: meta("s"), StringData: map[string]string{"password": planted}})
	dir := filepath.Join(t.TempDir(), "recordings")
	s := start(t, recordArgs(t, server.url, dir, "pods,secrets")...)
	s.err.await(t, `1 pod, 1 secret in namespace "shop"; now recording, Ctrl-C ends`)
	server.update(&corev1.Secret{ObjectMeta: meta("s"), StringData: map[string]string{"password": planted + "2"}})
	server.update(pod("web", corev1.ConditionTrue))

	updates := func(file string) map[string]int {
		recording, err := flight.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, track := range recording.Tracks {
			for _, r := range track.Records {
				if r.Kind.String() == "event" && r.Key != "" {
					found[r.Key]++
				}
				if bytes.Contains(r.Data, []byte(planted)) || bytes.Contains(r.Data, []byte("cGxhbnRlZ")) {
					t.Errorf("the recording has the Secret: %q", r.Data)
				}
			}
		}
		return found
	}
	for files := 1; ; files++ {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		for strings.Count(s.out.String(), ".zip\n") < files {
			<-s.out.grew
		}
		written := strings.Fields(s.out.String())
		if found := updates(written[files-1]); found["shop/web"] > 0 && found["shop/s"] > 0 {
			break
		}
	}
	s.end(t)
	written := strings.Fields(s.out.String())
	last := written[len(written)-1]
	if found := updates(last); found["shop/web"] != 1 || found["shop/s"] != 1 {
		t.Errorf("the last recording has %v", found)
	}
	if info, err := os.Stat(last); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	if out := run(t, 0, "replay", last, "--speed", "0").out.String(); !strings.Contains(out, "Dynamic pods.v1 [in shop] updated shop/web at ") {
		t.Errorf("the replay prints %s", out)
	}
}

// TestRecordEnds records for a time, and prints the name of the file alone.
func TestRecordEnds(t *testing.T) {
	t.Parallel()
	server := newCluster(t, pod("web", corev1.ConditionFalse))
	dir := t.TempDir()
	s := run(t, 0, recordArgs(t, server.url, dir, "pods", "--for", "2s", "-q")...)
	name := strings.TrimSuffix(s.out.String(), "\n")
	recording, err := flight.Open(name)
	if err != nil || filepath.Dir(name) != dir || s.err.String() != "" {
		t.Fatalf("it prints %q and %q: %v", s.out, s.err, err)
	}
	if len(recording.Tracks) != 1 || len(recording.Tracks[0].Records) == 0 {
		t.Errorf("the tracks are %v", recording.Tracks)
	}
}

func TestRecordRefused(t *testing.T) {
	t.Parallel()
	server := newCluster(t)
	file := textFile(t, t.TempDir(), "file", "")
	fails(t, recordArgs(t, "http://127.0.0.1:1", file, "pods", "--for", "1s", "-q"), // before it asks the server
		"the recording cannot be written", "choose another --dir")
	server.RefuseStreamedLists(true)
	server.Inject(apisim.Match{Verb: "list"}, apisim.Refuse(403, 0))
	fails(t, recordArgs(t, server.url, t.TempDir(), "pods"), `may not list and watch pods in namespace "shop"`)
}
