package contract_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// countingTransport is a transport that counts its requests.
type countingTransport struct {
	http.RoundTripper
	requests atomic.Int64
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// TestRequestsGoThroughTheHTTPClientOfTheOptions has a rest.Config without a transport. The
// timeout of the client does not end watches.
func TestRequestsGoThroughTheHTTPClientOfTheOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		client, err := rest.HTTPClientFor(w.server.Config())
		w.must(err)
		through := &countingTransport{RoundTripper: client.Transport}
		client.Transport, client.Timeout = through, time.Second
		config := &rest.Config{Host: w.server.Config().Host, QPS: -1}
		w.factory, err = tidings.NewFactory(config, tidings.FactoryOptions{HTTPClient: client})
		w.must(err)
		maps := mapsOf(w)
		w.start()
		w.after(time.Minute)
		w.create("a", "1")
		w.must(maps.WaitFor(w.ctx, w.versions["a"]))
		if h := maps.Health(); h.LastError != nil || through.requests.Load() == 0 {
			t.Errorf("after %d requests health is %+v", through.requests.Load(), h)
		}
		if client.CheckRedirect != nil || client.Timeout != time.Second {
			t.Errorf("the factory has changed the client: %+v", client)
		}
	})
}
