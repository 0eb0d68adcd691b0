package kubectl

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tidings-go/tidings/apisim"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// users are those of the session of that name, which is the first one's.
var users = []apisim.User{
	{Name: "reader", Token: "token-of-reader", Allow: []apisim.Rule{{Verbs: []string{"get", "list", "watch"}, Resources: []string{"pods"}, Namespaces: []string{"default"}}}},
	{Name: "admin", Token: "token-of-admin", Allow: []apisim.Rule{{Verbs: []string{"*"}, Resources: []string{"*"}}}},
}

// newSession returns a session without users, of whom nothing is asked.
func newSession(t *testing.T) *session {
	url, err := startServer(t).Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return prepare(t, &clientcmdapi.Cluster{Server: url}, &clientcmdapi.AuthInfo{})
}

// newSessionOf returns a session of the first of some users. It is over TLS, as kubectl
// sends no token in clear.
func newSessionOf(t *testing.T, users []apisim.User) *session {
	server := startServer(t)
	if err := server.SetUsers(users...); err != nil {
		t.Fatal(err)
	}
	url, authority, err := server.ListenTLS("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return prepare(t, &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: authority}, &clientcmdapi.AuthInfo{Token: users[0].Token})
}

func startServer(t *testing.T) *apisim.Server {
	return apisim.Options{Seed: 1}.Start(t, "testdata/fleet.yaml")
}

// newServeSession returns a session with a process of "tidings serve", which has the objects and
// the seed of the other sessions.
func newServeSession(t *testing.T) *session {
	return newCommandSession(t, "serve", "--seed", "1", "--load", "testdata/fleet.yaml")
}

var (
	// The progress output of "kubectl rollout status" and "kubectl wait", which depends on the
	// time.
	meanwhile = regexp.MustCompile(`(?m)^(Waiting for deployment .*|.* condition met)\n`)
	// The name of a pod of a deployment.
	podName = regexp.MustCompile(`\b(hello)-[a-z0-9]{10}-[a-z0-9]{5}\b`)
)

// newDemoSession returns a session with a process of "tidings demo", which changes nothing by
// itself.
func newDemoSession(t *testing.T) *session {
	s := newCommandSession(t, "demo", "--seed", "1", "--pods", "40", "--churn", "0", "--for", "0")
	normalise := s.normalise
	s.normalise = func(text string) string {
		text = meanwhile.ReplaceAllString(normalise(text), "")
		return podName.ReplaceAllString(text, "$1-RANDOM")
	}
	return s
}

// newCommandSession builds the command and returns a session with a process of it.
func newCommandSession(t *testing.T, args ...string) *session {
	home := t.TempDir()
	tidings, kubeconfig := filepath.Join(home, "tidings"), filepath.Join(home, "kubeconfig")
	build := exec.Command("go", "build", "-o", tidings, "./cmd/tidings")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	server := exec.Command(tidings, append(args, "--write-kubeconfig", kubeconfig)...)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	server.Stderr = server.Stdout
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var reading sync.WaitGroup
	t.Cleanup(func() {
		server.Process.Signal(os.Interrupt) //nolint:errcheck // Wait says whether it ended otherwise
		reading.Wait()
		if err := server.Wait(); err != nil {
			t.Errorf("%v: %v", server.Args, err)
		}
	})
	var config *clientcmdapi.Config
	for config == nil {
		if !lines.Scan() {
			t.Fatalf("%v ended before it had written its kubeconfig: %v", server.Args, lines.Err())
		}
		if config, err = clientcmd.LoadFromFile(kubeconfig); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	reading.Go(func() {
		for lines.Scan() { // so that the command can go on printing
		}
	})
	return &session{T: t, home: home, kubeconfig: kubeconfig, normalise: normaliser(config.Clusters[config.Contexts[config.CurrentContext].Cluster].Server)}
}

// prepare returns a session of a user of a server.
func prepare(t *testing.T, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *session {
	t.Helper()
	s := &session{T: t, home: t.TempDir(), normalise: normaliser(cluster.Server)}
	s.kubeconfig = filepath.Join(s.home, "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["apisim"] = cluster
	config.AuthInfos["user"] = user
	config.Contexts["apisim"] = &clientcmdapi.Context{Cluster: "apisim", AuthInfo: "user"}
	config.CurrentContext = "apisim"
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	// An age of less than two minutes. The text after it stays in its column.
	age   = regexp.MustCompile(`\b\d{1,3}s\b`)
	stamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[0-9:.]+Z|\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000`)
	log   = regexp.MustCompile(`(?m)^[EWI]\d{4} [\d:.]+ +\d+ (\S+):\d+\]`)
	// The first output of a binary with the race detector.
	racing = regexp.MustCompile(`(?m)^LOG withrace\.go\] .*\n`)
	// The directories whose files "kubectl diff" compares.
	compared = regexp.MustCompile(`\S*/(LIVE|MERGED)-\d+`)
	ends     = regexp.MustCompile(`(?m) +$`)
)

// normaliser returns a function that removes from a text all that differs from run to run, and
// spaces at the ends of lines.
func normaliser(url string) func(string) string {
	return func(text string) string {
		text = strings.ReplaceAll(text, url, "SERVER")
		text = stamp.ReplaceAllString(text, "TIME")
		text = age.ReplaceAllStringFunc(text, func(a string) string { return "0s" + strings.Repeat(" ", len(a)-2) })
		text = log.ReplaceAllString(text, "LOG $1]")
		text = compared.ReplaceAllString(text, "$1")
		text = racing.ReplaceAllString(text, "")
		return ends.ReplaceAllString(text, "")
	}
}
