// Command member is a replica of a sharded controller, for tests of the contract of shards. It
// writes a journal of its acts. Its calls copy data.asked of ConfigMaps into the annotation "seen",
// with the name of the replica and the number of the write.
//
// The calls neither heed the end of their contexts nor give their writes a precondition, so that
// only the guard holds back late writes. Calls for objects with the name "slow" take some time.
package main

import (
	"context"
	"errors"
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
	"github.com/tidings-go/tidings/shard"
)

const workers = 16

// flags are the command line.
type flags struct {
	kubeconfig, journal, name, generation, by string
	lease, clock                              time.Duration
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
	r := &replica{Journal: j, name: f.name, Slots: controller.NewSlots(tidings.SlotKey(f.by))}
	config.QPS = -1
	config.Wrap(r.wrap(f.clock))
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		return err
	}
	c, err := r.newController(factory, config)
	if err != nil {
		return err
	}
	group, err := shard.Join(ctx, config, r, shard.Options{
		Namespace: "ops", Name: "members", Identity: f.name, Generation: f.generation, Duration: f.lease,
	})
	if err != nil {
		return err
	}
	informers, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop() // after the slots are handed over
	if err := factory.Start(informers); err != nil {
		return err
	}
	return errors.Join(c.Run(ctx), group.Wait())
}

// replica is the reconciler, and the handler of a group, which records the slots that it receives.
type replica struct {
	*controller.Slots
	*journal.Journal
	name   string
	member atomic.Pointer[string] // the identity of the last membership

	client                  *rest.RESTClient
	calls, writes, renewals atomic.Uint64
}

func (r *replica) newController(
	factory *tidings.Factory, config *rest.Config,
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
	term.AfterFunc(func() { r.note(journal.Closed, journal.Entry{Member: term.Identity()}) })
	r.Slots.Begin(t)
}

// Serve notes the slots.
func (r *replica) Serve(owned []shard.Slot) {
	epochs := map[int]uint64{}
	for _, o := range owned {
		epochs[o.Number] = o.Epoch
	}
	r.note(journal.Serve, journal.Entry{Epochs: epochs})
	r.Slots.Serve(owned)
}

// Drain notes the slots, and again when no call for them runs any more.
func (r *replica) Drain(ctx context.Context, slots shard.Set) (map[string]string, error) {
	epochs := map[int]uint64{}
	for n := range slots.Slots() {
		epochs[n] = 0
	}
	r.note(journal.Drain, journal.Entry{Epochs: epochs})
	versions, err := r.Slots.Drain(ctx, slots)
	if err == nil {
		r.note(journal.Drained, journal.Entry{Epochs: epochs})
	}
	return versions, err
}
