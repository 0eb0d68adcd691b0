package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/spf13/cobra"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/fleet"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

const (
	// statusEvery is how often a demo draws its status line on a terminal,
	// statusLineEvery how often it prints one elsewhere.
	statusEvery, statusLineEvery = 250 * time.Millisecond, 5 * time.Second
	// settleTimeout bounds how long the caches may take to hold the last change.
	settleTimeout = 15 * time.Second
	// settleEvery is how often a demo looks whether its handlers are done.
	settleEvery = 10 * time.Millisecond
)

// demonstration is one run of the demo.
//
// It owns the server, the factory and, while the cluster is busy, the goroutine that
// makes the changes; run ends all of them before it returns.
type demonstration struct {
	o       demoOptions
	screen  *view.Screen
	server  *simulation
	access  *kubeconfig
	fleet   *fleet.Fleet
	factory *tidings.Factory
	mirrors []*mirror
	tally   *view.Tally
	ledger  *view.Ledger
	heap    view.Heap
	synced  time.Duration // how long the first sync took
	initial int64         // objects that it brought

	rendering sync.Mutex // held by one handler at a time; guards lines and failure
	lines     *view.Lines
	failure   error // the first of printing
	failed    chan struct{}
}

func runDemo(cmd *cobra.Command, c *common, o demoOptions) error {
	d := &demonstration{
		o: o, screen: c.screen(cmd), ledger: view.NewLedger(), failed: make(chan struct{}),
	}
	defer d.screen.Close()
	if err := d.open(cmd.Context(), c); err != nil {
		if cmd.Context().Err() != nil {
			return nil // Ctrl-C before there was anything to show
		}
		return err
	}
	return d.run(cmd.Context())
}

// open starts the server, fills it, and asks for the informers.
func (d *demonstration) open(ctx context.Context, c *common) error {
	if err := claimKubeconfig(d.o.kubeconfig); err != nil {
		return err // before what takes long
	}
	began := time.Now()
	server, err := newSimulation(d.o.listen)
	if err != nil {
		return err
	}
	d.server = server
	d.fleet = fleet.New(server, fleet.Options{Seed: d.o.seed, Pods: d.o.pods, Made: d.made})
	if err := d.fleet.Populate(ctx, began); err != nil {
		return errors.Join(err, server.Close())
	}
	if warning := server.at.warning(); warning != "" {
		d.screen.Note(warning)
	}
	d.say("a made-up cluster of %s at %s, built in %s from seed %d", view.Counted(int64(d.o.pods), "pod", "pods"), server.at, view.Short(time.Since(began)), d.o.seed)
	if d.access, err = writeKubeconfig(d.o.kubeconfig, server.URL(), d.fleet.Namespace()); err != nil {
		return errors.Join(err, server.Close())
	}
	d.say("for kubectl in another terminal: export KUBECONFIG=%s", d.access.quoted())
	if err := d.follow(server.Config(), c); err != nil {
		return errors.Join(err, server.Close(), d.access.remove())
	}
	return nil
}

// follow asks a factory for an informer of every type of the fleet.
func (d *demonstration) follow(config *rest.Config, c *common) error {
	var err error
	if d.factory, err = tidings.NewFactory(config, tidings.FactoryOptions{Logger: c.logger(d.screen, view.Secrecy{})}); err != nil {
		return err
	}
	add := func(m *mirror, err error) error {
		d.mirrors = append(d.mirrors, m)
		return err
	}
	err = errors.Join(
		add(mirrored[*corev1.Node](d.factory, d.take)),
		add(mirrored[*corev1.Namespace](d.factory, d.take)),
		add(mirrored[*appsv1.Deployment](d.factory, d.take)),
		add(mirrored[*appsv1.ReplicaSet](d.factory, d.take)),
		add(mirrored[*corev1.Pod](d.factory, d.take)),
		add(mirrored[*corev1.Service](d.factory, d.take)),
		add(mirrored[*corev1.ConfigMap](d.factory, d.take)),
		add(mirroredCustom(d.factory, fleet.Database, fleet.Databases, d.take)),
	)
	if err != nil {
		return err
	}
	types := make([]view.Type, len(d.mirrors))
	for i, m := range d.mirrors {
		types[i] = m.of
	}
	d.tally = view.NewTally(types)
	d.lines = view.NewLines(view.LinesOptions{Palette: d.screen.Palette(), Width: d.screen.Width, Types: types})
	return nil
}

// made notes a change that the fleet made.
func (d *demonstration) made(c fleet.Change) {
	d.ledger.Made(c.Object.GetResourceVersion(), c.Began)
}

// take shows a change that an informer saw, and tells the fleet, as others may have made
// it. It is called by the handlers.
func (d *demonstration) take(c view.Change) {
	d.tally.Count(c)
	if obj, ok := c.Object().(fleet.Object); ok {
		d.fleet.Hear(obj, c.Event == tidings.Deleted)
	}
	if c.Initial {
		return
	}
	d.ledger.Seen(c.Object().GetResourceVersion(), c.At)
	d.rendering.Lock()
	defer d.rendering.Unlock()
	if d.failure != nil {
		return
	}
	if err := d.screen.Print(d.lines.Render(c)); err != nil {
		d.failure = err
		close(d.failed)
	}
}

func (d *demonstration) say(format string, args ...any) {
	line := d.screen.Palette().Dim("── ") + fmt.Sprintf(format, args...) + "\n"
	d.screen.Print(line) //nolint:errcheck // the next change that cannot be printed ends the demo
}

// run follows the busy cluster until the time is up or ctx ends, and then compares.
func (d *demonstration) run(ctx context.Context) error {
	// The informers outlive ctx: what was made has to arrive before the comparison.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	err := d.sync(ctx, following)
	var lasted time.Duration
	var found agreement
	if err == nil {
		began := time.Now()
		err = d.churn(ctx)
		lasted = time.Since(began)
	}
	if err == nil {
		if err = d.settle(following); err == nil {
			found, err = d.compare(following)
		}
	}
	stopping, cancel := context.WithTimeout(following, stopTimeout)
	defer cancel()
	err = errors.Join(err, d.factory.Shutdown(stopping), d.server.Close(), d.access.remove())
	d.screen.Close()
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil // Ctrl-C before the first sync
	case err != nil:
		return err
	}
	d.summarise(lasted, found)
	return found.err()
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
	for _, m := range d.mirrors {
		d.initial += int64(m.length())
	}
	d.heap.Sample()
	until := "until Ctrl-C"
	if d.o.length > 0 {
		until = fmt.Sprintf("for %s, Ctrl-C ends it sooner", view.Short(d.o.length))
	}
	d.say("%d informers hold its %s after %s; now %s a second %s", len(d.mirrors), view.Counted(d.initial, "object", "objects"), view.Short(d.synced), rateText(d.o.churn), until)
	return nil
}

func rateText(perSecond float64) string {
	if whole := int64(perSecond); float64(whole) == perSecond {
		return view.Counted(whole, "change", "changes")
	}
	return fmt.Sprintf("%v changes", perSecond)
}

// churn changes the cluster and draws the status until the time is up.
func (d *demonstration) churn(ctx context.Context) error {
	churning, stop := context.WithCancel(ctx)
	if d.o.length > 0 {
		churning, stop = context.WithTimeout(ctx, d.o.length)
	}
	defer stop()
	began := time.Now()
	d.tally.Rate(began) // what the first rate counts from
	broken := make(chan error, 1)
	var churn sync.WaitGroup
	churn.Go(func() { broken <- d.fleet.Run(churning, d.o.churn) })
	defer churn.Wait()
	defer stop()
	every := statusLineEvery
	if d.screen.Live() {
		every = statusEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case err := <-broken:
			return err
		case <-d.failed:
			return d.failure
		case now := <-ticker.C:
			d.drawStatus(now, began)
		}
	}
}

func (d *demonstration) drawStatus(now, began time.Time) {
	status := statusOf(d.factory.Health())
	status.Lag, status.HasLag = d.ledger.TakeWorst()
	status.Rate, status.Heap = d.tally.Rate(now), d.heap.Sample()
	if d.o.length > 0 {
		status.Left = max(time.Second, d.o.length-now.Sub(began))
	}
	line := status.Line(d.screen.Palette())
	if d.screen.Live() {
		d.screen.SetStatus(line)
		return
	}
	d.screen.Print(line + "\n") //nolint:errcheck // the next change that cannot be printed ends the demo
}

// settle ends all writing and waits until the caches hold the last of it and the handlers
// have been told.
func (d *demonstration) settle(ctx context.Context) error {
	d.server.gate.close()
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for _, m := range d.mirrors {
		_, version, err := d.server.List(ctx, m.resource)
		if err != nil {
			return err
		}
		if m.await(ctx, version) != nil {
			return nil //nolint:nilerr // the comparison says what is missing
		}
	}
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	for _, m := range d.mirrors {
		for m.handler().State != tidings.Idle {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	}
	return nil
}

// summarise prints what there was to see.
func (d *demonstration) summarise(lasted time.Duration, found agreement) {
	p := d.screen.Palette()
	counts, latency, heap := d.ledger.Counts(), d.ledger.Latency(), d.heap.Peak()
	var folded uint64
	for _, m := range d.mirrors {
		folded += m.handler().Folded
	}
	seen := fmt.Sprintf("%s made, %s seen", view.Count(int64(counts.Made)), view.Count(int64(counts.Seen)))
	if folded > 0 {
		seen += fmt.Sprintf("; %s folded into later ones, because the output was behind", view.Counted(int64(folded), "update", "updates"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %s\n%s", p.Dim("──"), view.Short(lasted), view.Table(d.tally.Counts(), p))
	row := func(name, text string) { fmt.Fprintf(&b, "  %s %s\n", p.Dim(fmt.Sprintf("%-10s", name)), text) }
	row("changes", seen)
	if latency.Count() > 0 {
		row("lag", fmt.Sprintf("%s median, %s for 99 of 100, %s at most, from the write to the handler", view.Short(latency.Quantile(0.5)), view.Short(latency.Quantile(0.99)), view.Short(latency.Max())))
	}
	row("first sync", fmt.Sprintf("%s in %s", view.Counted(d.initial, "object", "objects"), view.Short(d.synced)))
	row("peak heap", view.Bytes(heap)+", the server in this process included")
	if found.differ == 0 {
		row("agreement", p.Good(found.String()))
	} else {
		row("agreement", p.Bad(found.String()))
	}
	d.screen.Print(b.String()) //nolint:errcheck // there is nothing left to stop
}
