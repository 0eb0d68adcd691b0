package ctrlruntime

import (
	"cmp"
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// probe is the value of a context whose requests are recorded and not sent.
type probe struct{ request *http.Request }

type probeKey struct{}

func probeOf(ctx context.Context) (p *probe, ok bool) {
	p, ok = ctx.Value(probeKey{}).(*probe)
	return p, ok
}

// probeTransport answers the requests of probes itself.
type probeTransport struct{ next http.RoundTripper }

// RoundTrip answers a probe with 204. No decoder accepts that as a list, and client-go's metrics
// of requests do not count it as an error.
func (t *probeTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	p, ok := probeOf(req.Context())
	if !ok {
		return t.next.RoundTrip(req)
	}
	p.request = req
	return &http.Response{
		StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody, Request: req,
	}, nil
}

// WrappedRoundTripper returns the transport that sends, for apimachinery's util/net.
func (t *probeTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// probeLimiter is a rate limit for requests that are sent. Probes take none of its tokens: while an
// informer is made, all reads of the cache wait.
type probeLimiter struct{ flowcontrol.RateLimiter }

// Wait waits for a token.
func (l probeLimiter) Wait(ctx context.Context) error {
	if _, ok := probeOf(ctx); ok {
		return nil
	}
	return l.RateLimiter.Wait(ctx)
}

// unlimited returns a configuration whose rate limit does not count probes. If config has none,
// each client has one of its own, which gets a token more: the probe of a watch takes none.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.RateLimiter != nil {
		config.RateLimiter = probeLimiter{config.RateLimiter}
	} else if config.Burst >= 0 {
		config.Burst = cmp.Or(config.Burst, rest.DefaultBurst) + 1
	}
	return config
}

// probed returns a client that records probes and sends everything else as of does.
func probed(of *http.Client) *http.Client {
	return wrapped(of, func(next http.RoundTripper) http.RoundTripper { return &probeTransport{next} })
}

// wrapped returns a client like another one, with a transport that wraps the transport of that
// one.
func wrapped(of *http.Client, wrap func(http.RoundTripper) http.RoundTripper) *http.Client {
	next := of.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client := *of
	client.Transport = wrap(next)
	return &client
}

// httpClientOf returns the client that cache.New would use.
func httpClientOf(config *rest.Config, given *http.Client) (*http.Client, error) {
	if given != nil {
		return given, nil
	}
	config = rest.CopyConfig(config)
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	return rest.HTTPClientFor(config)
}

// requestsOf returns the requests that lw sends for a list and for a watch; nil for one that it
// does not send.
func requestsOf(lw cache.ListerWatcher) (list, watch *http.Request) {
	of := cache.ToListerWatcherWithContext(lw)
	listProbe, watchProbe := new(probe), new(probe)
	with := func(p *probe) context.Context {
		return context.WithValue(context.Background(), probeKey{}, p)
	}
	// The errors are those of an answer without content.
	_, _ = of.ListWithContext(with(listProbe), metav1.ListOptions{})
	if w, err := of.WatchWithContext(with(watchProbe), metav1.ListOptions{}); err == nil {
		w.Stop()
	}
	return listProbe.request, watchProbe.request
}
