package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// build builds a program of this repository, whose package is a directory below its root.
func build(t *testing.T, module, dir string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), filepath.Base(dir))
	command := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+dir)
	command.Dir = module
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", dir, err, output)
	}
	return program
}

// kubeconfig writes a file with the configuration of a client, and returns its path.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["server"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData,
	}
	c.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	c.Contexts["context"] = &clientcmdapi.Context{Cluster: "server", AuthInfo: "user"}
	c.CurrentContext = "context"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// replica is a program in a process of its own. It ends with the test.
type replica struct {
	*testing.T
	name  string
	run   *exec.Cmd
	input io.Writer
	ended chan struct{}
	err   error // how it ended; set when ended is closed

	mu     sync.Mutex // guards output
	output strings.Builder
}

// startReplica starts a program.
func startReplica(t *testing.T, name, program string, arguments ...string) *replica {
	t.Helper()
	r := &replica{T: t, name: name, run: exec.Command(program, arguments...),
		ended: make(chan struct{})}
	r.run.Stdout, r.run.Stderr = r, r
	var err error
	if r.input, err = r.run.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := r.run.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		r.err = r.run.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("replica %s has printed:\n%s", name, r.text())
		}
	})
	return r
}

// Write keeps the output of the process.
func (r *replica) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.Write(p)
}

// text returns the output of the process so far.
func (r *replica) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

// prints waits until the process has printed a text so many times, and returns the groups of the
// last match.
func (r *replica) prints(pattern string, times int) []string {
	r.Helper()
	text := regexp.MustCompile(pattern)
	var found [][]string
	err := eventually(r.Context(), patience, func(context.Context) (bool, error) {
		found = text.FindAllStringSubmatch(r.text(), -1)
		return len(found) >= times, nil
	})
	if err != nil {
		r.Fatalf("replica %s prints %q %d times, want %d: %v", r.name, pattern, len(found), times, err)
	}
	return found[len(found)-1]
}

// signal sends a signal.
func (r *replica) signal(s os.Signal) {
	r.Helper()
	if err := r.run.Process.Signal(s); err != nil {
		r.Fatalf("replica %s: %v", r.name, err)
	}
}

// halt stops the process with SIGSTOP, and returns when all of its threads stand still.
func (r *replica) halt() {
	r.Helper()
	r.signal(syscall.SIGSTOP)
	err := eventually(r.Context(), patience, func(ctx context.Context) (bool, error) {
		pid := strconv.Itoa(r.run.Process.Pid)
		state, err := exec.CommandContext(ctx, "ps", "-o", "state=", "-p", pid).Output()
		return strings.HasPrefix(strings.TrimSpace(string(state)), "T"), err
	})
	if err != nil {
		r.Fatalf("replica %s does not stand still: %v", r.name, err)
	}
}

// resume continues a process that was halted.
func (r *replica) resume() {
	r.Helper()
	r.signal(syscall.SIGCONT)
}

// stop asks the process to end, and that it ends without an error.
func (r *replica) stop() {
	r.Helper()
	r.signal(syscall.SIGTERM)
	if err := r.awaitEnd(); err != nil {
		r.Fatalf("replica %s has ended with %v", r.name, err)
	}
}

// awaitEnd waits for the end of the process, and returns its error.
func (r *replica) awaitEnd() error {
	r.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.Fatalf("replica %s does not end", r.name)
	}
	return r.err
}

// kill ends the process as a crash does.
func (r *replica) kill() {
	r.run.Process.Kill() //nolint:errcheck // it may have ended
	<-r.ended
}

// holder returns the user that holds a Lease of the namespace default, "" for none. The identity
// of a holder begins with its user.
func holder(ctx context.Context, client kubernetes.Interface, name string) (string, error) {
	lease, err := client.CoordinationV1().Leases("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	user, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return user, nil
}

// awaitHolder waits until a user holds a Lease.
func awaitHolder(t *testing.T, client kubernetes.Interface, name, want string) {
	t.Helper()
	err := eventually(t.Context(), patience, func(ctx context.Context) (bool, error) {
		got, err := holder(ctx, client, name)
		if err == nil && got != want {
			err = fmt.Errorf("the holder is %q, want %q", got, want)
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
