package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/fleet"
	"github.com/tidings-go/tidings/cmd/tidings/internal/replicas"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/internal/see/format"
)

const (
	// statusEvery is the period of the status line on a terminal, statusLineEvery its period
	// elsewhere.
	statusEvery, statusLineEvery = 250 * time.Millisecond, 5 * time.Second
	// bookmarkEvery is the interval of bookmarks. The last comparison waits for a bookmark.
	bookmarkEvery = time.Second
	// settleTimeout bounds the time until the caches hold the last change.
	settleTimeout = 15 * time.Second
	// settleEvery is the period of the checks whether the handlers of a demo are idle.
	settleEvery = 10 * time.Millisecond
	// stopTimeout bounds the time for which a command waits for the informers to stop.
	stopTimeout = 5 * time.Second
)

// demonstration is one run of the demo. It owns the server, the factory and the goroutine of the
// fleet; run ends all of them.
type demonstration struct {
	o       demoOptions
	screen  *view.Screen
	server  *server
	fleet   *fleet.Fleet
	cluster *controller.Manager // of the fleet's controllers and users
	factory *tidings.Factory
	// recorder is the recorder of the factory, for the button of the page.
	recorder *flight.Recorder
	types    []demoType
	printer  *printer
	faults   *faults         // nil without --faults
	replicas *replicas.Group // nil without --replicas
	made     atomic.Uint64   // counted writes
	lag      view.Lag
	counts   atomic.Bool   // writes are counted: the initial objects exist
	peak     uint64        // largest heap size
	synced   time.Duration // duration of the first lists
	initial  int           // number of objects in them

	// writes has a part of allWrites for each write over HTTP. A demo acquires all parts to keep
	// clients from writing. They guard closed.
	writes *semaphore.Weighted
	closed bool // writes over HTTP are refused

	closePages func() // nil before the pages are served
}

// allWrites is larger than the number of concurrent writes.
const allWrites = 1 << 20

func runDemo(ctx context.Context, c *common, o demoOptions) error {
	d := &demonstration{o: o, screen: c.screen(), server: new(server)}
	err := d.open(ctx, c)
	if err == nil {
		err = d.run(ctx)
	}
	err = errors.Join(err, d.endReplicas(ctx)) // run may have ended them already
	if d.closePages != nil {
		d.closePages()
	}
	if d.server.Server != nil {
		err = errors.Join(err, d.server.close())
	}
	d.screen.SetStatus("")
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // Ctrl-C before the first lists were complete
	}
	return err
}

// open starts the server, creates its objects, and creates the informers.
func (d *demonstration) open(ctx context.Context, c *common) (err error) {
	if err := checkKubeconfig(d.o.kubeconfig); err != nil {
		return err // before the long creation of the objects
	}
	if err := checkAddress(d.o.page, cannotServePages); err != nil {
		return err
	}
	began := time.Now()
	if err := d.newServer(c); err != nil {
		return err
	}
	if err := d.server.listen(d.o.listen, d.screen); err != nil {
		return err
	}
	if err := d.fleet.Populate(ctx, began); err != nil {
		return err
	}
	err = say(d.screen, "a simulated cluster with %s at %s, created in %s with --seed %d",
		format.Counted(d.o.pods, "pod", "pods"), d.server, format.Short(time.Since(began)), d.o.seed)
	if err != nil {
		return err
	}
	if err := d.server.publish(d.o.kubeconfig, d.fleet.Namespace(), d.screen); err != nil {
		return err
	}
	if err := d.addTypes(c, &rest.Config{Host: d.server.local, QPS: -1}); err != nil {
		return err
	}
	if d.cluster, err = d.fleet.Manager(d.o.churn); err != nil {
		return err
	}
	var page string
	page, d.closePages, err = servePages(d.o.page, debug.Options{Bodies: true, Recorder: d.recorder},
		d.factory, d.cluster)
	if err == nil {
		err = say(d.screen, "its informers and controllers on a page: %s", page)
	}
	if err == nil && d.o.isDivided {
		err = d.startReplicas(c)
	}
	return err
}

func (d *demonstration) newServer(c *common) (err error) {
	d.writes = semaphore.NewWeighted(allWrites)
	if d.o.faults {
		d.faults = &faults{d: d}
	}
	d.server.Server, err = apisim.New(apisim.Options{
		BookmarkInterval: bookmarkEvery, Middleware: d.middleware, OnWrite: d.written,
	})
	if err != nil {
		return err
	}
	d.fleet = fleet.New(d.server.Server, d.fleetOptions(c.logger(d.screen, view.Secrecy{})))
	return nil
}

// written counts a write of an object that the informers follow.
func (d *demonstration) written(gvr schema.GroupVersionResource, version string) {
	isOf := func(t demoType) bool { return t.resource == gvr }
	if d.counts.Load() && slices.ContainsFunc(d.types, isOf) {
		d.made.Add(1)
		d.lag.Written(version, time.Now())
	}
}

// middleware delays writes while all parts of d.writes are held, and refuses them once d is closed.
func (d *demonstration) middleware(next http.Handler) http.Handler {
	return onlyPrograms(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		if d.writes.Acquire(r.Context(), 1) != nil {
			return // the client is gone
		}
		defer d.writes.Release(1)
		if d.closed {
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
				"the demo is about to end: it accepts no more writes")
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// demoAgent is the user agent of the demo's informers.
const demoAgent = "tidings-demo"

func (d *demonstration) addTypes(c *common, config *rest.Config) (err error) {
	config.UserAgent = demoAgent
	options := tidings.FactoryOptions{Logger: c.logger(d.screen, view.Secrecy{})}
	if d.faults != nil {
		options.Transport.Backoff.Max = longestBackoff
	}
	if d.recorder, err = flight.New(flight.Options{Logger: options.Logger}); err != nil {
		return err
	}
	options.Transport.Recorder = d.recorder
	if d.factory, err = tidings.NewFactory(config, options); err != nil {
		return err
	}
	err = errors.Join(
		addType[*corev1.Node](d, corev1.SchemeGroupVersion.WithKind("Node")),
		addType[*corev1.Namespace](d, corev1.SchemeGroupVersion.WithKind("Namespace")),
		addType[*appsv1.Deployment](d, appsv1.SchemeGroupVersion.WithKind("Deployment")),
		addType[*appsv1.ReplicaSet](d, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
		addType[*corev1.Pod](d, corev1.SchemeGroupVersion.WithKind("Pod")),
		addType[*corev1.Service](d, corev1.SchemeGroupVersion.WithKind("Service")),
		addType[*corev1.ConfigMap](d, corev1.SchemeGroupVersion.WithKind("ConfigMap")))
	if err != nil {
		return err
	}
	var types []view.Type
	for _, t := range d.types {
		types = append(types, t.of)
	}
	d.printer = &printer{screen: d.screen}
	d.printer.show(types)
	d.counts.Store(true)
	return nil
}

// receive counts and prints a change. Handlers call it.
func (d *demonstration) receive(c view.Change) {
	d.printer.tally.Count(c)
	// After the restore of a backup, informers report all objects, including unchanged ones.
	same := c.Event == tidings.Updated && equality.Semantic.DeepEqual(c.Old, c.New)
	if !c.Initial && !same {
		d.lag.Seen(c.Object().GetResourceVersion(), c.At)
		if !d.o.isDivided {
			d.printer.print(c)
		}
	}
}

// run makes changes until the time is up or ctx ends, and then compares caches and server.
func (d *demonstration) run(ctx context.Context) error {
	// The informers outlive ctx: they must receive the last changes before the comparison.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var lasted time.Duration
	var found comparison
	err := d.sync(ctx, following)
	if err == nil {
		began := time.Now()
		err = d.churn(ctx)
		lasted = time.Since(began)
		err = errors.Join(err, d.endReplicas(ctx))
	}
	if err == nil {
		err = d.settle(following)
	}
	if err == nil {
		found, err = d.compare(following)
	}
	stopping, cancel := context.WithTimeout(following, stopTimeout)
	defer cancel()
	err = errors.Join(err, d.factory.Shutdown(stopping))
	d.screen.SetStatus("")
	if err == nil {
		d.summarise(lasted, found)
		err = found.err()
	}
	return err
}

// sync starts the informers and waits for their first lists.
func (d *demonstration) sync(ctx, following context.Context) error {
	began := time.Now()
	if err := d.factory.Start(following); err != nil {
		return err
	}
	if err := d.factory.WaitForSync(ctx); err != nil {
		return err
	}
	d.synced = time.Since(began)
	for _, health := range d.factory.Health() {
		d.initial += health.Objects
	}
	d.peak = heapSize()
	until, rate := "until Ctrl-C", fmt.Sprintf("%v changes", d.o.churn)
	if d.o.length > 0 {
		until = fmt.Sprintf("for %s, Ctrl-C ends it sooner", format.Short(d.o.length))
	}
	if whole := int64(d.o.churn); float64(whole) == d.o.churn {
		rate = format.Counted(whole, "change", "changes")
	}
	return say(d.screen, "%d informers hold its %s after %s; now %s per second %s",
		len(d.types), format.Counted(d.initial, "object", "objects"), format.Short(d.synced),
		rate, until)
}

// churn changes the cluster and draws the status line until the time is up.
func (d *demonstration) churn(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if d.o.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.o.length)
		defer cancel()
	}
	began := time.Now()
	d.printer.tally.Rate(began) // the start of the first rate
	done := make(chan error, 1)
	go func() { done <- d.cluster.Run(ctx) }()
	if d.faults != nil {
		var faults sync.WaitGroup
		faults.Go(func() { d.faults.run(ctx) })
		defer faults.Wait()
		defer stop()
	}
	failed, unfollow := d.follow(ctx)
	defer unfollow()
	every := statusLineEvery
	if d.screen.Live() {
		every = statusEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case err := <-failed:
			stop()
			return errors.Join(err, <-done)
		case <-d.printer.failed:
			stop()
			<-done
			return d.printer.err
		case now := <-ticker.C:
			d.drawStatus(now, began)
		}
	}
}

func (d *demonstration) drawStatus(now, began time.Time) {
	d.peak = max(d.peak, heapSize())
	var parts []string
	if d.o.length > 0 {
		parts = append(parts, remaining(d.o.length, began, now))
	}
	parts = append(parts, d.printer.status(d.factory.Health(), now)...)
	if lag := d.lag.TakeRecent(); lag > 0 {
		parts = append(parts, "lag "+format.Short(lag))
	}
	switch line := statusLine(d.screen, parts); {
	case d.screen.Live():
		d.screen.SetStatus(line)
	case !d.o.isDivided: // with replicas, the lines about them replace it
		d.screen.Print(line + "\n") //nolint:errcheck // the next change fails, too
	}
}

// settle ends all writing. It waits until the caches hold the last write and the handlers have
// returned.
func (d *demonstration) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := d.writes.Acquire(ctx, allWrites); err != nil {
		return fmt.Errorf("a client is still writing after %v: %w", settleTimeout, err)
	}
	d.closed = true
	d.writes.Release(allWrites)
	for _, t := range d.types {
		_, version, err := d.server.List(ctx, t.resource, "")
		if err != nil {
			return err
		}
		if t.waitFor(ctx, version) != nil {
			return nil //nolint:nilerr // the comparison reports the missing objects
		}
	}
	for _, t := range d.types {
		for t.handler().State != tidings.HandlerIdle {
			if !sleep(ctx, settleEvery) {
				return nil
			}
		}
	}
	return nil
}
