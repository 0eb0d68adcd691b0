package e2e

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/proxy"
	"github.com/tidings-go/tidings/tidingstest"
)

// TestConformance runs the contract's tests on informers of every kind, on a real API server whose
// connections can be cut: in client-go's default encodings, and in JSON alone.
func TestConformance(t *testing.T) {
	for name, contentType := range map[string]string{"default": "", "json": "application/json"} {
		t.Run(name, func(t *testing.T) {
			s := behindProxy(t, newServer(t))
			s.Config.ContentType = contentType
			tidingstest.Run(t, s)
		})
	}
}

// TestConformanceCBOR does so in the third encoding, which a server offers with a feature
// gate only, and which a dynamic client of client-go requests with gates of its own. Informers
// with a source of our own request JSON, and must receive that.
func TestConformanceCBOR(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsAllowCBOR, true)
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsPreferCBOR, true)
	gates := []string{"--feature-gates=CBORServingAndStorage=true"}
	server := newServer(t, gates...)
	for _, row := range []struct {
		kind string
		cbor bool
	}{{"dynamic", false}, {"drop-in dynamic", true}} {
		t.Run(row.kind, func(t *testing.T) {
			s := behindProxy(t, server)
			var lists, watches atomic.Int64
			s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return &counter{next, &lists, &watches}
			})
			t.Cleanup(func() {
				if n, m := lists.Load(), watches.Load(); n+m > 0 != row.cbor {
					t.Errorf("%d answers and %d streams came in CBOR", n, m)
				}
			})
			tidingstest.Run(t, s, kinds(t, row.kind)...)
		})
	}
}

// TestConformanceRestart tests the faults that take a real server many seconds each, on some
// kinds.
func TestConformanceRestart(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	s := behindProxy(t, server)
	s.Restart = func() error { return server.Restart(t.Context()) }
	s.Compact = func() error { return forget(t.Context(), server) }
	for name, test := range tidingstest.Tests(kinds(t, "typed", "drop-in typed")...) {
		if strings.HasSuffix(name, "/P01_FaultsOfTheServer") {
			t.Run(name, func(t *testing.T) { test(t, s) })
		}
	}
}

// behindProxy returns a server whose informers connect through a proxy, which can cut their
// connections. Writers connect directly.
func behindProxy(t *testing.T, server *apiserver.Server) tidingstest.Server {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, server)
	config := server.Config()
	config.Host = p.URL()
	return tidingstest.Server{
		Config: config, Client: client,
		CutConnections: func() error {
			p.Cut()
			return nil
		},
	}
}

// startProxy starts a proxy that ends with the test.
func startProxy(t *testing.T, server *apiserver.Server) *proxy.Proxy {
	t.Helper()
	return balance(t, server.URL())
}

// balance starts a proxy before some servers, which ends with the test.
func balance(t *testing.T, urls ...string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Start(urls...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the proxy: %v", err)
		}
	})
	return p
}

// kinds returns the kinds of these names.
func kinds(t *testing.T, names ...string) []tidingstest.Kind {
	t.Helper()
	var found []tidingstest.Kind
	for _, name := range names {
		for _, kind := range tidingstest.Kinds() {
			if kind.Name == name {
				found = append(found, kind)
			}
		}
	}
	if len(found) != len(names) {
		t.Fatalf("there are %d kinds named %q", len(found), names)
	}
	return found
}

// counter counts answers in CBOR.
type counter struct {
	next           http.RoundTripper
	lists, watches *atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch answer.Header.Get("Content-Type") {
	case "application/cbor":
		c.lists.Add(1)
	case "application/cbor-seq":
		c.watches.Add(1)
	}
	return answer, nil
}
