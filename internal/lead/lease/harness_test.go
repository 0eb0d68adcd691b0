package lease

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
)

func TestMain(m *testing.M) { leasetest.Main(m) }

// world is a server with a Lease of the process a, and that process with its view.
type world struct {
	*testing.T
	server   *apisim.Server
	client   *Client
	holder   Holder
	follower Follower
	failures Failures
	timeouts atomic.Int32 // of requests
	silent   atomic.Bool  // requests have no answer
	closed   atomic.Int32 // how often idle connections were closed

	mu       sync.Mutex // guards the rest
	view     *Lease     // as it was observed last; nil: it is gone
	observed []string   // the versions of events
	term     *Term      // ends with the view
}

// bubble runs a test in a bubble, with a Lease for 15 s that is renewed every 3 s.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		times := Times{}.Complete(5)
		w := &world{T: t, server: leasetest.Start(t, apisim.Options{})}
		config := leasetest.Config(w.server, "a")
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &wire{w, next} })
		selected := Selection{Parameter: "fieldSelector", Value: "metadata.name=rollout", Name: "rollout"}
		client, err := NewClient(config, leasetest.Namespace, selected, times.Timeout(), func() {
			w.timeouts.Add(1)
			w.follower.Restart()
		})
		if err != nil {
			t.Fatal(err)
		}
		w.client = client
		w.holder = Holder{
			Client: client, Times: times, Clock: still,
			Observed: w.leaseOf, Observe: w.observe, Read: w.read,
		}
		w.follower.Client, w.follower.Times, w.follower.Requests = client, times, *w.requests()
		w.follower.List, w.follower.Read, w.follower.Observe = w.list, w.read, w.observeEvent
		l := &Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leasetest.Namespace, Name: "rollout"}}
		Take(l, "a", times.Seconds())
		sent := still.Now()
		if l, err = client.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		w.term = NewTerm(t.Context(), "ops/rollout", "a", times, still, sent)
		w.observe(l)
		w.server.ForgetRequests()
		test(w)
		w.term.End(ErrReleased)
	})
}

// wire is the transport of the process.
type wire struct {
	w    *world
	next http.RoundTripper
}

func (t *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.w.silent.Load() {
		return t.next.RoundTrip(r)
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func (t *wire) CloseIdleConnections() {
	t.w.closed.Add(1)
	utilnet.CloseIdleConnectionsFor(t.next)
}

func (w *world) requests() *Requests {
	return &Requests{Failures: &w.failures, Log: slog.New(slog.DiscardHandler)}
}

func (w *world) observe(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.view = l
	if loss := w.term.Loss(l); loss != nil {
		w.term.End(loss)
	}
}

func (w *world) observeEvent(l *Lease, deleted bool) {
	w.mu.Lock()
	w.observed = append(w.observed, l.ResourceVersion)
	w.mu.Unlock()
	if deleted {
		l = nil
	}
	w.observe(l)
}

func (w *world) leaseOf(identity string) (*Lease, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if HolderOf(w.view) != identity {
		return nil, false
	}
	return w.view.DeepCopy(), true
}

func (w *world) read(ctx context.Context) error {
	l, err := w.client.Get(ctx, "rollout")
	if apierrors.IsNotFound(err) {
		l, err = nil, nil
	}
	if err == nil {
		w.observe(l)
	}
	return err
}

func (w *world) list(ctx context.Context) (version string, err error) {
	list, err := w.client.List(ctx)
	if err != nil {
		return "", err
	}
	var listed *Lease
	for i := range list.Items {
		listed = &list.Items[i]
	}
	w.observe(listed)
	return list.ResourceVersion, nil
}

// run runs a loop until the end of the test.
func (w *world) run(loop func(ctx context.Context)) {
	ctx, stop := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() { loop(ctx) })
	w.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// renew renews the term until it closes.
func (w *world) renew(soon <-chan struct{}) {
	w.run(func(context.Context) {
		w.holder.Renew(w.term.Context(), w.term, w.requests(), soon, w.renewal)
	})
	w.Cleanup(func() { w.term.End(ErrReleased) })
}

func (w *world) renewal(l *Lease) error {
	Take(l, "a", w.holder.Times.Seconds())
	return nil
}

// sent returns the number of requests of the process with a verb.
func (w *world) sent(verb string) int {
	return len(w.server.Requests().Of(leasetest.By("a", verb)))
}

// change writes the Lease past the process.
func (w *world) change(change func(l *Lease)) {
	w.Helper()
	leasetest.Change(w.T, w.server, "rollout", change)
}

// note is a change that leaves the holder.
func note(l *Lease) { l.Annotations = map[string]string{"after": l.ResourceVersion} }

// losses are changes that end a term, and why they do.
var losses = map[string]struct {
	change func(w *world)
	want   error
}{
	"taken": {func(w *world) {
		w.change(func(l *Lease) { l.Spec.HolderIdentity = new("thief") })
	}, ErrTaken},
	"released": {func(w *world) { w.change(Release) }, ErrTaken},
	"deleted":  {(*world).delete, ErrDeleted},
}

// delete deletes the Lease.
func (w *world) delete() {
	w.Helper()
	_, err := w.server.Delete(w.Context(), leasetest.Resource, leasetest.Namespace, "rollout")
	if err != nil {
		w.Fatal(err)
	}
}
