package controllers

import (
	"context"
	"log/slog"
	"sync"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/shard"
)

// divider is a way to divide units of work among replicas.
type divider struct {
	name  string
	units int
	// run takes part as a replica until ctx ends, and returns when it has left.
	run func(ctx context.Context, w *world, r *replica) error
}

var dividers = []divider{
	{"Tidings", shard.Count, runSlots},
	{"knative buckets", knativeBuckets, runBuckets},
}

// knativeBuckets is the most that knative's configuration allows.
const knativeBuckets = 10

// ownership is a time in which a replica owns a unit.
type ownership struct {
	unit     int
	replica  string
	from, to time.Time // to is zero while it lasts
}

// owners are the ownerships of all replicas.
type owners struct {
	mu  sync.Mutex // guards all
	all []*ownership
}

// replica is one that divides units with others.
type replica struct {
	name, generation string
	owners           *owners
	stop             context.CancelFunc
	left             chan struct{} // closed when run has returned
	dead             bool          // owners.mu guards it
}

// start runs a replica until the test ends.
func (d divider) start(w *world, o *owners, name, generation string) *replica {
	ctx, stop := context.WithCancel(w.Context())
	r := &replica{name: name, generation: generation, owners: o, stop: stop, left: make(chan struct{})}
	go func() {
		defer close(r.left)
		if err := d.run(ctx, w, r); err != nil {
			w.Errorf("replica %s: %v", name, err)
		}
	}()
	w.Cleanup(func() {
		stop()
		<-r.left
	})
	return r
}

// take notes that the replica owns a unit.
func (r *replica) take(unit int) {
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	if !r.dead {
		r.owners.all = append(r.owners.all, &ownership{unit: unit, replica: r.name, from: time.Now()})
	}
}

// leave notes that the replica owns some units no more.
func (r *replica) leave(is func(unit int) bool) {
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	r.leaveLocked(is)
}

func (r *replica) leaveLocked(is func(unit int) bool) {
	for _, o := range r.owners.all {
		if o.replica == r.name && o.to.IsZero() && is(o.unit) {
			o.to = time.Now()
		}
	}
}

func every(int) bool { return true }

// crash ends the replica without a word.
func (r *replica) crash(w *world) {
	w.server.Inject(apisim.Match{Host: hostOf(r.name)}, apisim.Drop())
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	r.leaveLocked(every)
	r.dead = true
}

// runSlots is a member of a group of shards.
func runSlots(ctx context.Context, w *world, r *replica) error {
	group, err := shard.Join(ctx, w.config(r.name), &slotOwner{replica: r}, shard.Options{
		Namespace: opsNamespace, Name: leaseName, Identity: r.name, Generation: r.generation,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return group.Wait()
}

// slotOwner is a handler without work. It owns what it calls for.
type slotOwner struct {
	*replica
	mu    sync.Mutex // guards ready
	ready shard.Set
}

func (s *slotOwner) set(change func(ready shard.Set) shard.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.ready
	s.ready = change(before)
	s.leave(before.Minus(s.ready).Has)
	for n := range s.ready.Minus(before).Slots() {
		s.take(n)
	}
}

func (s *slotOwner) Begin(t controller.Term) {
	s.set(func(shard.Set) shard.Set { return shard.Set{} })
	t.(*shard.Term).AfterFunc(func() { s.leave(every) })
}

func (s *slotOwner) Serve(entries []shard.Owned) {
	s.set(func(ready shard.Set) shard.Set {
		for _, e := range entries {
			ready.Add(e.Number)
		}
		return ready
	})
}

func (s *slotOwner) Shut(entries shard.Set) {
	s.set(func(ready shard.Set) shard.Set { return ready.Minus(entries) })
}

func (s *slotOwner) Unshut(entries shard.Set) {
	s.set(func(ready shard.Set) shard.Set { return ready.Union(entries) })
}

func (s *slotOwner) Drop(entries shard.Set) { s.Shut(entries) }

func (s *slotOwner) Work() shard.Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	return shard.Work{Started: true, Ready: s.ready}
}

func (s *slotOwner) Warm(context.Context, shard.Set) error { return nil }
func (s *slotOwner) Calls(int) shard.Calls                 { return shard.Calls{Known: true} }
func (s *slotOwner) Abort(shard.Set, error)                {}
func (s *slotOwner) Ends() <-chan struct{}                 { return nil }
func (s *slotOwner) Left(error)                            {}

// runBuckets takes part in knative's elections, with their default times.
func runBuckets(ctx context.Context, w *world, r *replica) error {
	client, err := kubernetes.NewForConfig(w.config(r.name))
	if err != nil {
		return err
	}
	config, err := leaderelection.NewConfigFromMap(nil)
	if err != nil {
		return err
	}
	elections := config.GetComponentConfig("program")
	elections.Buckets, elections.Identity = knativeBuckets, r.name
	elections.LeaseName = func(i uint32) string { return bucketName(int(i)) }
	ctx = logging.WithLogger(ctx, zap.NewNop().Sugar())
	ctx = leaderelection.WithStandardLeaderElectorBuilder(ctx, client, elections)
	elector, err := leaderelection.BuildElector(ctx, bucketOwner{r}, "queue",
		func(reconciler.Bucket, types.NamespacedName) {})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

// bucketName returns the name of a bucket, whose last letter is its number.
func bucketName(i int) string { return "bucket-" + string(rune('0'+i)) }

// bucketOwner notes the buckets that a replica leads.
type bucketOwner struct{ *replica }

func numberOf(b reconciler.Bucket) int { return int(b.Name()[len(b.Name())-1] - '0') }

// Promote begins to own a bucket.
func (o bucketOwner) Promote(
	b reconciler.Bucket, _ func(reconciler.Bucket, types.NamespacedName),
) error {
	o.take(numberOf(b))
	return nil
}

// Demote ends it.
func (o bucketOwner) Demote(b reconciler.Bucket) {
	o.leave(func(unit int) bool { return unit == numberOf(b) })
}

// settle waits until nothing moves any more.
func settle() {
	time.Sleep(5 * time.Minute)
	synctest.Wait()
}
