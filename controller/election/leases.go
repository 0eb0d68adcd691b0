package election

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// leases sends the requests of one Lease.
type leases struct {
	rest            rest.Interface
	http            *http.Client
	namespace, name string
	timeout         time.Duration // of each request but a watch
	// onTimeout is called when a request had no answer in time.
	onTimeout func()
	// suspect is set when a request had no answer in time: its connection may be dead.
	suspect atomic.Bool
}

// newLeases returns a client without the rate limit of config, whose tokens others may have
// used. The loop limits itself.
func newLeases(config *rest.Config, o Options) (*leases, error) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &coordinationv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS, config.RateLimiter, config.Timeout = -1, nil, 0
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("election: the rest.Config cannot be used: %w", err)
	}
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("election: the rest.Config cannot be used: %w", err)
	}
	return &leases{
		rest: client, http: httpClient,
		namespace: o.Namespace, name: o.Name, timeout: o.Duration / 5,
	}, nil
}

func (l *leases) get(ctx context.Context) (*coordinationv1.Lease, error) {
	return l.one(ctx, "get", l.rest.Get().Name(l.name))
}

func (l *leases) create(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease,
	error) {
	return l.one(ctx, "create", l.rest.Post().Body(lease))
}

func (l *leases) update(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease,
	error) {
	return l.one(ctx, "update", l.rest.Put().Name(l.name).Body(lease))
}

// tryUpdate sends an update that changes nothing.
func (l *leases) tryUpdate(ctx context.Context, lease *coordinationv1.Lease) error {
	_, err := l.one(ctx, "update",
		l.rest.Put().Name(l.name).Param("dryRun", metav1.DryRunAll).Body(lease))
	return err
}

func (l *leases) list(ctx context.Context) (*coordinationv1.LeaseList, error) {
	list := new(coordinationv1.LeaseList)
	return list, l.do(ctx, "list", l.selected(l.rest.Get()), list)
}

func (l *leases) watch(ctx context.Context, version string) (watch.Interface, error) {
	w, err := l.selected(l.rest.Get()).Namespace(l.namespace).Resource("leases").
		Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version).MaxRetries(0).Watch(ctx)
	return w, l.requestError("watch", err)
}

// selected selects the one Lease, so that a Role can name it.
func (l *leases) selected(r *rest.Request) *rest.Request {
	return r.Param("fieldSelector", "metadata.name="+l.name)
}

func (l *leases) one(ctx context.Context, verb string, r *rest.Request) (*coordinationv1.Lease,
	error) {
	lease := new(coordinationv1.Lease)
	return lease, l.do(ctx, verb, r, lease)
}

// do sends a request once. Its timeout is a parameter too, so that the server ends it as well.
// After a request without an answer, the next one uses another connection.
func (l *leases) do(ctx context.Context, verb string, r *rest.Request, into runtime.Object) error {
	if l.suspect.Swap(false) {
		utilnet.CloseIdleConnectionsFor(l.http.Transport)
	}
	err := r.Namespace(l.namespace).Resource("leases").MaxRetries(0).Timeout(l.timeout).
		Do(ctx).Into(into)
	if isTimeout(err) {
		l.suspect.Store(true)
		l.onTimeout()
	}
	return l.requestError(verb, err)
}

// isExpired reports whether a watch must begin with a new list.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }
