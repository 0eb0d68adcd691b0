// Command member is a replica of a sharded controller, for tests of the contract of shards. It
// writes a journal of its acts. Its calls copy data.asked of ConfigMaps into the annotation "seen",
// with the name of the replica and the number of the write.
//
// The calls neither heed the end of their contexts nor give their writes a precondition, so that
// only the guard holds back late writes. Calls for objects with the name "slow" take some time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/e2e/internal/journal"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard"
)

// flags are the command line.
type flags struct {
	kubeconfig, journal, name, generation, by string
	lease, clock                              time.Duration
	workers                                   int
}

func main() {
	var f flags
	flag.StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	flag.StringVar(&f.journal, "journal", "", "path of the journal")
	flag.StringVar(&f.name, "name", "", "name of the replica, with which its identities begin")
	flag.StringVar(&f.generation, "generation", "", "version of the program")
	flag.StringVar(&f.by, "by", string(controller.ByNamespace), "what objects are divided by")
	flag.DurationVar(&f.lease, "lease", 0, "duration of the Lease; 0 is the default")
	flag.DurationVar(&f.clock, "clock", 0, "how far the replica's clock is ahead, as others see it")
	flag.IntVar(&f.workers, "workers", 1, "number of workers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := f.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the replica until ctx ends, and its slots are handed over.
func (f flags) run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return err
	}
	j, err := journal.Create(f.journal)
	if err != nil {
		return err
	}
	r := &replica{Journal: j, name: f.name, Slots: controller.NewSlots(tidings.SlotKey(f.by)), epochs: map[int]uint64{}}
	config.QPS = -1
	config.Wrap(r.wrap(f.clock))
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		return err
	}
	c, err := r.newController(factory, config, f.workers)
	if err != nil {
		return err
	}
	_, err = shard.Join(ctx, config, r, shard.Options{
		Namespace: "ops", Name: "members", Identity: f.name, Generation: f.generation, Duration: f.lease,
	})
	if err != nil {
		return err
	}
	if err := factory.Start(ctx); err != nil {
		return err
	}
	return c.Run(ctx) // returns after the hand-overs
}

// replica is the reconciler, and the handler of a group, which records the slots that it receives.
type replica struct {
	*controller.Slots
	*journal.Journal
	name   string
	member atomic.Pointer[string] // the identity of the last membership

	// The goroutine of the group alone uses these: the slots that were shut and may still have
	// calls, and the epochs of those that were served.
	shut   shard.Set
	epochs map[int]uint64

	client                  *rest.RESTClient
	calls, writes, renewals atomic.Uint64
}

func (r *replica) newController(
	factory *tidings.Factory, config *rest.Config, workers int,
) (*controller.Controller[*corev1.ConfigMap], error) {
	maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Slots: r.Held()})
	if err != nil {
		return nil, err
	}
	guard, err := controller.NewGuard(config, controller.GuardOptions{})
	if err != nil {
		return nil, err
	}
	if r.client, err = newClient(guard.Config()); err != nil {
		return nil, err
	}
	return controller.New(maps, controller.Options[*corev1.ConfigMap]{
		Name: "copier", Workers: workers, Guard: guard, Slots: r.Slots,
	}, r.reconcile)
}

func (r *replica) note(kind journal.Kind, e journal.Entry) {
	e.Kind = kind
	if member := r.member.Load(); member != nil && e.Member == "" {
		e.Member = *member
	}
	r.Note(e)
}

// Begin notes the beginning and the end of a term.
func (r *replica) Begin(t controller.Term) {
	term := t.(*shard.Term)
	r.member.Store(new(term.Identity()))
	r.note(journal.Begin, journal.Entry{})
	r.shut = shard.Set{}
	term.AfterFunc(func() { r.note(journal.Closed, journal.Entry{Member: term.Identity()}) })
	r.Slots.Begin(t)
}

// Warm notes the slots that may come.
func (r *replica) Warm(ctx context.Context, entries shard.Set) error {
	epochs := map[int]uint64{}
	for n := range entries.Slots() {
		epochs[n] = 0
	}
	r.note(journal.Warm, journal.Entry{Epochs: epochs})
	return r.Slots.Warm(ctx, entries)
}

// Serve notes the slots.
func (r *replica) Serve(owned []shard.Owned) {
	epochs := map[int]uint64{}
	for _, o := range owned {
		epochs[o.Number], r.epochs[o.Number] = o.Epoch, o.Epoch
		r.shut.Remove(o.Number)
	}
	r.note(journal.Serve, journal.Entry{Epochs: epochs})
	r.Slots.Serve(owned)
}

// Shut notes the slots for which no more calls begin.
func (r *replica) Shut(entries shard.Set) {
	r.Slots.Shut(entries)
	r.note(journal.Drain, journal.Entry{Epochs: r.epochsOf(entries)})
	r.shut = r.shut.Union(entries)
}

// Unshut notes the slots that are served again.
func (r *replica) Unshut(entries shard.Set) {
	r.shut = r.shut.Minus(entries)
	r.note(journal.Serve, journal.Entry{Epochs: r.epochsOf(entries)})
	r.Slots.Unshut(entries)
}

func (r *replica) epochsOf(entries shard.Set) map[int]uint64 {
	epochs := map[int]uint64{}
	for n := range entries.Slots() {
		epochs[n] = r.epochs[n]
	}
	return epochs
}

// Calls notes the slots that were shut and have no calls any more: they may be given away.
func (r *replica) Calls(entry int) shard.Calls {
	c := r.Slots.Calls(entry)
	if c.Running == 0 && r.shut.Has(entry) {
		r.shut.Remove(entry)
		r.note(journal.Drained, journal.Entry{Epochs: r.epochsOf(slot.Of(entry))})
	}
	return c
}
