package cli_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/health"
)

type pods struct{}

func (pods) Health() health.Informer { return health.Informer{Name: "pods.v1"} }

// servePages serves the pages of a program with one informer, and returns their address.
func servePages(t *testing.T) *url.URL {
	t.Helper()
	pages := debug.New(debug.Options{})
	if err := pages.Add(pods{}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.StripPrefix("/debug/tidings", pages))
	t.Cleanup(func() {
		pages.Close()
		server.Close()
	})
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func TestTopOnce(t *testing.T) {
	t.Parallel()
	address := servePages(t)
	got := run(t, 0, "top", address.Host+"/debug/tidings", "--once")
	if !strings.Contains(got.out.String(), "\nINFORMERS\nNAME     STATE  FOR") || !strings.Contains(got.out.String(), "\npods.v1 ") {
		t.Errorf("tables: %s", got.out)
	}
	got = run(t, 0, "top", address.String()+"/debug/tidings/", "--once", "-o", "json")
	if !strings.HasPrefix(got.out.String(), "{\n") || !strings.Contains(got.out.String(), `"name": "pods.v1"`) {
		t.Errorf("JSON: %s", got.out)
	}
	fails(t, []string{"top", address.String(), "--once"}, "is not a page of Tidings' package debug: it answers with 404 Not Found: name the address of the first page")
	fails(t, []string{"top", "http://127.0.0.1:9", "--once"}, "http://127.0.0.1:9/ does not answer: connection refused: is the program running")
}

// kubelets serves an API server. It forwards the streams for a port of a pod to a server of the
// test, as a kubelet forwards them to the pod.
func kubelets(t *testing.T, api, pod, port string, to *url.URL) string {
	t.Helper()
	forward := func(s httpstream.Stream) {
		defer s.Close() //nolint:errcheck // the connection has ended
		isThere, isData := s.Headers().Get(corev1.PortHeader) == port, s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData
		switch {
		case isThere && isData:
			conn, err := net.Dial("tcp", to.Host)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()  //nolint:errcheck // the connection has ended
			go io.Copy(conn, s) //nolint:errcheck // it ends with the connection
			io.Copy(s, conn)    //nolint:errcheck // it ends with the connection
		case !isThere && !isData:
			io.WriteString(s, "connection refused") //nolint:errcheck // the client has gone
		}
	}
	address, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(address)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/pods/"+pod+"/portforward") {
			next.ServeHTTP(w, r)
			return
		}
		asked := httptest.NewRecorder() // the API server decides whether the user may forward ports
		next.ServeHTTP(asked, httptest.NewRequestWithContext(r.Context(), http.MethodPost, r.URL.Path, nil))
		if asked.Code == http.StatusForbidden {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if r.Header.Get("Upgrade") != spdy.HeaderSpdy31 {
			w.WriteHeader(http.StatusBadRequest) // a server of before 1.31
			return
		}
		w.Header().Set(httpstream.HeaderProtocolVersion, "portforward.k8s.io")
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
			go func() {
				<-replied
				forward(s)
			}()
			return nil
		})
		if conn != nil {
			<-conn.CloseChan()
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestTopOfAPod reads the pages of pods through a server that forwards to one of them.
func TestTopOfAPod(t *testing.T) {
	t.Parallel()
	pages := servePages(t)
	c := newCluster(t)
	address := kubelets(t, c.url, "ready", "6060", pages)
	selector := map[string]string{"app": "web"}
	operator := &appsv1.Deployment{ObjectMeta: meta("operator"), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: selector}}}
	idle := &appsv1.Deployment{ObjectMeta: meta("idle"), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "idle"}}}}
	service := &corev1.Service{ObjectMeta: meta("operator"), Spec: corev1.ServiceSpec{Selector: selector}}
	pending := pod("pending", corev1.ConditionFalse)
	pending.Status.Phase = corev1.PodPending
	c.create(operator, idle, service,
		pod("early", corev1.ConditionFalse), pending, pod("ready", corev1.ConditionTrue))
	top := func(args ...string) []string {
		args = append([]string{"top", "--once", "--kubeconfig", kubeconfig(t, address), "--cache-dir", t.TempDir()}, args...)
		return append(args, "--path", "/debug/tidings")
	}
	for _, of := range []string{"deploy/operator", "service/operator", "pod/ready"} {
		if got := run(t, 0, top(of, "--port", "6060")...); !strings.Contains(got.out.String(), "\npods.v1 ") {
			t.Errorf("%s: %s", of, got.out)
		}
	}
	for _, failing := range []struct {
		of, want string
	}{
		{"deploy/idle", `deploy/idle has no running pod in namespace "shop": ` + "`kubectl get pods -n shop -l app=idle` lists its pods"},
		{"deploy/absent", `deployments.apps "absent" not found`},
		{"namespace/shop", "namespace/shop selects no pods: name a pod"},
		{"pod/early", "cannot forward a port to pod shop/early: "},
		{"pod/ready", "pod/ready -n shop, port 1 does not answer: the connection ended: is the program running"},
	} {
		fails(t, top(failing.of, "--port", strconv.Itoa(1)), failing.want)
	}
}
