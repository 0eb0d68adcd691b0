package lease

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Selection selects the Leases that are listed and watched.
type Selection struct {
	// Parameter is fieldSelector or labelSelector, and Value its value.
	Parameter, Value string
	// Name stands for the Leases in errors.
	Name string
}

// Client sends the requests of the Leases of a namespace.
type Client struct {
	rest      rest.Interface
	http      *http.Client
	namespace string
	selection Selection
	timeout   time.Duration // of each request but a watch
	// onTimeout is called when a request had no answer in time.
	onTimeout func()
	// suspect is set when a request had no answer in time: its connection may be dead.
	suspect atomic.Bool
}

// NewClient returns a client without the rate limit of config, whose tokens others may have used.
// The loops limit themselves. A request but a watch may take timeout. onTimeout is called when one
// had no answer in time.
func NewClient(config *rest.Config, namespace string, s Selection, timeout time.Duration,
	onTimeout func()) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &coordinationv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	// Each member reads all renewals: protobuf takes less time to decode.
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS, config.RateLimiter, config.Timeout = -1, nil, 0
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the rest.Config cannot be used: %w", err)
	}
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("the rest.Config cannot be used: %w", err)
	}
	return &Client{
		rest: client, http: httpClient, namespace: namespace, selection: s, timeout: timeout,
		onTimeout: onTimeout,
	}, nil
}

// Get reads a Lease.
func (c *Client) Get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	return c.one(ctx, "get", name, c.rest.Get().Name(name))
}

// Create creates a Lease.
func (c *Client) Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.one(ctx, "create", l.Name, c.rest.Post().Body(l))
}

// Update writes a Lease at the version that it has.
func (c *Client) Update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.one(ctx, "update", l.Name, c.rest.Put().Name(l.Name).Body(l))
}

// TryUpdate sends an update that changes nothing.
func (c *Client) TryUpdate(ctx context.Context, l *coordinationv1.Lease) error {
	_, err := c.one(ctx, "update", l.Name,
		c.rest.Put().Name(l.Name).Param("dryRun", metav1.DryRunAll).Body(l))
	return err
}

// Delete deletes a Lease at a version.
func (c *Client) Delete(ctx context.Context, name, version string) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}
	return c.do(ctx, "delete", name, c.rest.Delete().Name(name).Body(options), new(metav1.Status))
}

// List lists the selected Leases.
func (c *Client) List(ctx context.Context) (*coordinationv1.LeaseList, error) {
	list := new(coordinationv1.LeaseList)
	err := c.do(ctx, "list", c.selection.Name, c.selected(c.rest.Get()), list)
	if err == nil && list.ResourceVersion == "" {
		err = c.requestError("list", c.selection.Name, errNoLease)
	}
	return list, err
}

func (c *Client) watch(ctx context.Context, version string) (watch.Interface, error) {
	c.leaveSuspect()
	w, err := c.selected(c.rest.Get()).Namespace(c.namespace).Resource("leases").
		Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version).MaxRetries(0).Watch(ctx)
	return w, c.requestError("watch", c.selection.Name, err)
}

func (c *Client) selected(r *rest.Request) *rest.Request {
	return r.Param(c.selection.Parameter, c.selection.Value)
}

func (c *Client) one(ctx context.Context, verb, name string,
	r *rest.Request) (*coordinationv1.Lease, error) {
	l := new(coordinationv1.Lease)
	err := c.do(ctx, verb, name, r, l)
	if err == nil && (l.Name != name || l.ResourceVersion == "") {
		err = c.requestError(verb, name, errNoLease) // without a holder, it would be a released one
	}
	return l, err
}

// leaveSuspect makes the next request use another connection, after one without an answer.
func (c *Client) leaveSuspect() {
	if c.suspect.Swap(false) {
		utilnet.CloseIdleConnectionsFor(c.http.Transport)
	}
}

// do sends a request once. Its timeout is a parameter too, so that the server ends it as well.
func (c *Client) do(ctx context.Context, verb, name string, r *rest.Request,
	into runtime.Object) error {
	c.leaveSuspect()
	err := r.Namespace(c.namespace).Resource("leases").MaxRetries(0).Timeout(c.timeout).
		Do(ctx).Into(into)
	if IsTimeout(err) {
		c.suspect.Store(true)
		c.onTimeout()
	}
	return c.requestError(verb, name, err)
}
