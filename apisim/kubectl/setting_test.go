package kubectl

import (
	"encoding/pem"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
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
	s := prepare(t)
	url, err := s.server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.writeKubeconfig(&clientcmdapi.Cluster{Server: url}, &clientcmdapi.AuthInfo{})
	return s
}

// newSessionOf returns a session of the first of some users. It is over TLS, as kubectl
// sends no token in clear.
func newSessionOf(t *testing.T, users []apisim.User) *session {
	s := prepare(t)
	if err := s.server.SetUsers(users...); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(s.server)
	t.Cleanup(front.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	s.writeKubeconfig(&clientcmdapi.Cluster{Server: front.URL, CertificateAuthorityData: authority}, &clientcmdapi.AuthInfo{Token: users[0].Token})
	return s
}

func prepare(t *testing.T) *session {
	return &session{T: t, server: apisim.Options{Seed: 1}.Start(t, "testdata/fleet.yaml"), home: t.TempDir()}
}

func (s *session) kubeconfig() string { return filepath.Join(s.home, "kubeconfig") }

func (s *session) writeKubeconfig(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
	s.Helper()
	s.normalise = normaliser(cluster.Server)
	config := clientcmdapi.NewConfig()
	config.Clusters["apisim"] = cluster
	config.AuthInfos["user"] = user
	config.Contexts["apisim"] = &clientcmdapi.Context{Cluster: "apisim", AuthInfo: "user"}
	config.CurrentContext = "apisim"
	if err := clientcmd.WriteToFile(*config, s.kubeconfig()); err != nil {
		s.Fatal(err)
	}
}

var (
	// An age of less than two minutes. What follows it stays in its column.
	age   = regexp.MustCompile(`\b\d{1,3}s\b`)
	stamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[0-9:.]+Z|\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000`)
	log   = regexp.MustCompile(`(?m)^[EWI]\d{4} [\d:.]+ +\d+ (\S+):\d+\]`)
	// What a binary with the race detector says when it starts.
	racing = regexp.MustCompile(`(?m)^LOG withrace\.go\] .*\n`)
	ends   = regexp.MustCompile(`(?m) +$`)
)

// normaliser returns what takes from a text all that differs from run to run, and
// spaces at the ends of lines.
func normaliser(url string) func(string) string {
	return func(text string) string {
		text = strings.ReplaceAll(text, url, "SERVER")
		text = stamp.ReplaceAllString(text, "TIME")
		text = age.ReplaceAllStringFunc(text, func(a string) string { return "0s" + strings.Repeat(" ", len(a)-2) })
		text = log.ReplaceAllString(text, "LOG $1]")
		text = racing.ReplaceAllString(text, "")
		return ends.ReplaceAllString(text, "")
	}
}
