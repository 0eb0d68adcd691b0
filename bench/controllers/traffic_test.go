package controllers

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/shard"
)

const (
	trafficNamespaces = 1_000 // team-000 to team-999
	trafficObjects    = trafficNamespaces
	trafficRate       = 50 // changes a second
	trafficTime       = 100 * time.Second
	// leaseTraffic bounds the bytes a second of the Leases of one member, as another one watches
	// them.
	leaseTraffic = 500
)

// trafficCase is a server and a way to divide its objects.
type trafficCase struct {
	server  string
	options apisim.Options
	by      tidings.SlotKey
}

var trafficCases = []trafficCase{
	{"stock", apisim.Options{}, controller.ByUID},
	{"stock", apisim.Options{}, controller.ByNamespace},
	{"ShardedListAndWatch", apisim.Options{ShardedListAndWatch: true}, controller.ByUID},
}

// counters count the calls and requests of a replica.
type counters struct{ calls, requests, leaseWrites, received atomic.Int64 }

// traffic has the figures of all replicas per second.
type traffic struct {
	requests, leaseWrites float64
	received              float64 // bytes of the bodies of answers
	calls                 float64
	busiest, idlest       float64 // the calls of a replica, over the mean
}

// TestTraffic divides the objects of a controller, which change, among 1 to 8 replicas. It prints
// the requests of the replicas, and the distribution of the calls.
func TestTraffic(t *testing.T) {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "server\tby\treplicas\trequests/s\twrites of Leases/s\tkB/s\tkB/s of a replica\t"+
		"calls of the busiest, over the mean\tof the idlest")
	for _, c := range trafficCases {
		alone := 0.0
		for _, n := range pick([]int{1, 8}, []int{1, 2, 4, 8}, []int{1, 2, 4, 8}) {
			t.Run(fmt.Sprintf("%s/by_%s/%d", c.server, c.by, n), func(t *testing.T) {
				inWorldOf(t, c.options, func(w *world) {
					got := w.measureTraffic(c, n)
					each := got.received / float64(n)
					fmt.Fprintf(table, "%s\t%s\t%d\t%.1f\t%.2f\t%.0f\t%.0f\t%.2f\t%.2f\n", c.server, c.by, n,
						got.requests, got.leaseWrites, got.received/1000, each/1000, got.busiest, got.idlest)
					if got.calls < 0.99*trafficRate || got.busiest > 1.3 || got.leaseWrites > float64(n)/5+0.1 {
						t.Errorf("%+v", got)
					}
					if n == 1 {
						alone = each
					}
					most := 1.1 * alone
					if c.options.ShardedListAndWatch {
						most = 1.3*alone/float64(n) + leaseTraffic*float64(n)
					}
					if each > most {
						t.Errorf("a replica receives %.0f bytes a second, want at most %.0f", each, most)
					}
				})
			})
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
}

// measureTraffic lets replicas settle under the changes, and counts then.
func (w *world) measureTraffic(c trafficCase, n int) (all traffic) {
	w.Helper()
	var replicas []*counters
	for i := range trafficNamespaces {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: teamOf(i)}})
	}
	for i := range trafficObjects {
		w.create(deployment(teamOf(i), fmt.Sprint("d", i)))
	}
	for i := range n {
		name := fmt.Sprint("r", i)
		r, config := &counters{}, w.config(name)
		config.Wrap(r.count)
		replicas = append(replicas, r)
		ctx, stop := context.WithCancel(w.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			if err := shardedMain(ctx, config, name, c.by, &r.calls); err != nil {
				w.Errorf("replica %d: %v", i, err)
			}
		}()
		w.Cleanup(func() {
			stop()
			<-left
		})
	}
	w.changeFor(6 * time.Minute)
	for _, r := range replicas {
		for _, n := range []*atomic.Int64{&r.calls, &r.requests, &r.leaseWrites, &r.received} {
			n.Store(0)
		}
	}
	w.changeFor(trafficTime)
	var calls []float64
	perSecond := func(count *atomic.Int64) float64 { return float64(count.Load()) / trafficTime.Seconds() }
	for _, r := range replicas {
		all.requests += perSecond(&r.requests)
		all.leaseWrites += perSecond(&r.leaseWrites)
		all.received += perSecond(&r.received)
		all.calls += perSecond(&r.calls)
		calls = append(calls, perSecond(&r.calls))
	}
	mean := all.calls / float64(n)
	all.busiest, all.idlest = slices.Max(calls)/mean, slices.Min(calls)/mean
	return all
}

func teamOf(i int) string { return fmt.Sprintf("team-%03d", i%trafficNamespaces) }

// changeFor changes one object after the other.
func (w *world) changeFor(d time.Duration) {
	w.Helper()
	for began, i := time.Now(), 0; time.Since(began) < d; i = (i + 1) % trafficObjects {
		w.change(teamOf(i), fmt.Sprint("d", i), func(d *appsv1.Deployment) { d.Status.Replicas++ })
		time.Sleep(time.Second / trafficRate)
	}
	synctest.Wait()
}

// shardedMain is a program whose controller divides deployments among its replicas. It counts
// calls.
func shardedMain(
	ctx context.Context, config *rest.Config, name string, by tidings.SlotKey, calls *atomic.Int64,
) error {
	silent := slog.New(slog.DiscardHandler)
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Logger: silent})
	if err != nil {
		return err
	}
	slots := controller.NewSlots(by)
	deployments, err := tidings.For[*appsv1.Deployment](factory, tidings.Selection{Slots: slots.Held()})
	if err != nil {
		return err
	}
	guard, err := controller.NewGuard(config, controller.GuardOptions{})
	if err != nil {
		return err
	}
	c, err := controller.New(deployments, controller.Options[*appsv1.Deployment]{
		Name: "counter", Guard: guard, Slots: slots, Logger: silent,
	}, func(context.Context, controller.Request[*appsv1.Deployment]) (controller.Result, error) {
		calls.Add(1)
		return controller.Result{}, nil
	})
	if err != nil {
		return err
	}
	manager, err := controller.NewManager(factory, controller.ManagerOptions{Guard: guard, Logger: silent})
	if err != nil {
		return err
	}
	if err := manager.AddController(c); err != nil {
		return err
	}
	_, err = shard.Join(ctx, config, slots, shard.Options{
		Namespace: opsNamespace, Name: leaseName, Identity: name, Logger: silent,
	})
	if err != nil {
		return err
	}
	return manager.Run(ctx)
}

// count counts the requests of a replica, and the bytes of their answers.
func (c *counters) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		c.requests.Add(1)
		if q.Method != http.MethodGet && strings.Contains(q.URL.Path, "/leases") {
			c.leaseWrites.Add(1)
		}
		answer, err := next.RoundTrip(q)
		if err == nil {
			answer.Body = countedBody{answer.Body, &c.received}
		}
		return answer, err
	})
}

// countedBody counts the bytes that are read from it.
type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b countedBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
