package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/flowcontrol"
)

// maxStatusBytes bounds how much of an error answer is read.
const maxStatusBytes = 1 << 20

// Client sends the requests of any number of sources to one API server. It is
// safe for concurrent use.
type Client struct {
	// Mapper finds the resource of a kind; nil asks the server. Set it before the first request.
	// The server is asked all the same where the mapper does not know a kind, or where its answer
	// turns out to be wrong. Then a mapper that is a meta.ResettableRESTMapper is reset.
	Mapper meta.RESTMapper

	rest    rest.Interface
	http    *http.Client
	timeout time.Duration
	// jsonOnly keeps typed sources from asking for protobuf.
	jsonOnly bool
	// refusesDrop is set when the server has answered 406 because of dropParameter.
	refusesDrop atomic.Bool
	// All sources share objects through table, and the memory for lists in budget.
	table  Table
	budget Budget
	// mapperReset is when Mapper was last reset, in nanoseconds since 1970.
	mapperReset atomic.Int64
}

// NewClient returns a client for the server that config names, with its TLS,
// credentials, exec plugins, proxies, user agent and rate limit. The timeout of
// config applies to lists; a watch lasts as long as its own.
//
// With httpClient, that client sends the requests, with its own TLS, credentials, proxies and
// user agent in place of those of config. Its timeout applies to lists if config has none. nil
// makes one from config.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	if config == nil {
		return nil, errors.New("source: the rest.Config is nil: " +
			"load one with clientcmd or rest.InClusterConfig")
	}
	if _, _, err := rest.DefaultServerUrlFor(config); err != nil {
		// That error quotes the Host, which may have a password in it.
		return nil, errors.New("source: the rest.Config cannot be used: " +
			"its Host is no address: write it as in https://name:6443")
	}
	unlimited := rest.CopyConfig(config)
	unlimited.Timeout = 0
	if httpClient == nil {
		var err error
		if httpClient, err = rest.HTTPClientFor(unlimited); err != nil {
			return nil, fmt.Errorf("source: the rest.Config cannot be used: %w", err)
		}
	}
	timeout := cmp.Or(config.Timeout, httpClient.Timeout)
	httpClient = sameHostOnly(httpClient)
	// The serializer is never used, but the REST client insists on one.
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	unlimited.NegotiatedSerializer = codecs.WithoutConversion()
	restClient, err := rest.UnversionedRESTClientForConfigAndClient(unlimited, httpClient)
	if err != nil {
		return nil, fmt.Errorf("source: the rest.Config cannot be used: %w", err)
	}
	return &Client{rest: restClient, http: httpClient, timeout: timeout}, nil
}

// request is one GET.
type request struct {
	op, resource, namespace string
	path                    string
	query                   url.Values
	accept                  string
	// dropManagedFields asks the server to leave them out.
	dropManagedFields bool
	// nextPage marks the next page of a list. The rate limit does not delay it: the pages
	// come one after the other anyway, and the token expires.
	nextPage bool
	// onActivity is called when the request is sent, and with every part of the answer,
	// unless it is nil.
	onActivity func()
	// received counts the bytes of the answer, unless it is nil.
	received *atomic.Uint64
}

func (r request) fail(phase Phase, err error) error {
	return &Error{
		Op: r.op, Resource: r.resource, Namespace: r.namespace, Phase: phase, Err: Bound(err),
	}
}

// Server returns the address of the server: scheme, name, port and path.
func (c *Client) Server() string {
	u := c.rest.Get().URL()
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/")
}

// send sends a request with an Accept header, and returns the answer if its status is 200.
func (c *Client) send(ctx context.Context, r request, accept string) (*http.Response, error) {
	target := c.rest.Get().AbsPath(r.path).URL()
	target.RawQuery = r.query.Encode()
	measured := *target
	measured.User = nil // many may read the metrics
	if limiter := c.rest.GetRateLimiter(); limiter != nil && !r.nextPage {
		began := time.Now()
		if err := waitFor(ctx, limiter, r.onActivity); err != nil {
			err = fmt.Errorf("waiting for the client's rate limit: %w", err)
			return nil, r.fail(Connecting, err)
		}
		metrics.RateLimiterLatency.Observe(ctx, http.MethodGet, measured, time.Since(began))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, r.fail(Connecting, err)
	}
	req.Header.Set("Accept", accept)
	active(r.onActivity)
	began := time.Now()
	resp, err := c.http.Do(req)
	code := "<error>"
	if resp != nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	metrics.RequestResult.Increment(ctx, code, http.MethodGet, target.Host)
	if errors.Is(err, ErrRedirect) {
		return nil, r.fail(Answered, withoutURL(err))
	}
	if err != nil {
		if cause := silence(ctx); cause != nil {
			cause = fmt.Errorf("%w, not even the beginning of the answer", cause)
			return nil, r.fail(Connecting, cause)
		}
		return nil, r.fail(Connecting, withoutURL(err))
	}
	active(r.onActivity)
	resp.Body = &answerBody{resp.Body, ctx, r, 0}
	metrics.RequestLatency.Observe(ctx, http.MethodGet, measured, time.Since(began))
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, r.fail(Answered, statusError(resp, r))
	}
	return resp, nil
}

// waitFor waits for a rate limit. Meanwhile, the server does not count as silent.
func waitFor(ctx context.Context, limiter flowcontrol.RateLimiter, onActivity func()) (err error) {
	if limiter.TryAccept() {
		return nil
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		err = limiter.Wait(ctx)
	}()
	keepActive(onActivity, waited, nil)
	return err
}

// answerBody is a body that counts its bytes, reports when a part of it has come, and says why the
// caller has ended it.
type answerBody struct {
	io.ReadCloser
	ctx  context.Context
	of   request
	read int64
}

func (a *answerBody) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.read += int64(n)
	if a.of.received != nil {
		a.of.received.Add(uint64(n))
	}
	if n > 0 {
		active(a.of.onActivity)
	}
	if cause := silence(a.ctx); cause != nil && err != nil && err != io.EOF {
		return n, fmt.Errorf("%w, after %d bytes of the answer", cause, a.read)
	}
	return n, err
}

func active(onActivity func()) {
	if onActivity != nil {
		onActivity()
	}
}

// activityInterval is the period of the calls of OnActivity during waits that are not for the
// server.
const activityInterval = 100 * time.Millisecond

// keepActive calls onActivity until one of two channels is closed.
func keepActive(onActivity func(), done, ended <-chan struct{}) {
	tick := time.NewTicker(activityInterval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ended:
			return
		case <-tick.C:
			active(onActivity)
		}
	}
}

// silence returns why a request was ended, if the reason is that the server sent nothing.
func silence(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrSilent) {
		return cause
	}
	return nil
}

// statusError makes an error of apierrors from an answer that is not 200.
func statusError(resp *http.Response, r request) error {
	// The part that could be read explains more than the error of the rest.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxStatusBytes))
	retryAfter, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // the nearest int, if it is outside of their range
	retryAfter = max(0, min(retryAfter, math.MaxInt32))
	var status metav1.Status
	err := unmarshalStatus(mediaTypeOf(resp) == protobufType, body, &status)
	if err == nil && status.Status == metav1.StatusFailure {
		if status.Code == 0 {
			status.Code = int32(resp.StatusCode)
		}
		if retryAfter > 0 {
			if status.Details == nil {
				status.Details = &metav1.StatusDetails{}
			}
			status.Details.RetryAfterSeconds = int32(retryAfter)
		}
		return Bound(&apierrors.StatusError{ErrStatus: status})
	}
	name, group, _ := strings.Cut(r.resource, ".")
	resource := schema.GroupResource{Group: group, Resource: name}
	return apierrors.NewGenericServerResponse(resp.StatusCode, r.op, resource, "",
		summary(body), retryAfter, true)
}
