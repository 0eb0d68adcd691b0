package controller

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/controller/internal/incarnation"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/test/logtable"
	"github.com/tidings-go/tidings/source"
)

func objectOf(name, uid, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: name, UID: types.UID(uid), ResourceVersion: version,
	}}
}

// memorySource lists objects, and its watch sends no events.
type memorySource struct{ objects int }

func (s memorySource) List(
	context.Context, source.ListOptions,
) (source.Page[*corev1.ConfigMap], error) {
	page := source.Page[*corev1.ConfigMap]{Version: "1"}
	for i := range s.objects {
		object := objectOf(fmt.Sprint("x", i), fmt.Sprintf("%036d", i), "1")
		page.Items = append(page.Items, source.ItemOf(object))
	}
	return page, nil
}

func (s memorySource) Watch(
	ctx context.Context, o source.WatchOptions,
) (source.Stream[*corev1.ConfigMap], error) {
	if o.SendInitialEvents {
		return nil, source.ErrStreamedListRefused
	}
	return silence{ctx}, nil
}

type silence struct{ ctx context.Context }

func (s silence) Next() ([]source.Event[*corev1.ConfigMap], error) {
	<-s.ctx.Done()
	return nil, s.ctx.Err()
}

func (silence) Close() error { return nil }

// newTestRun returns a run, without its goroutines, of a controller with a number of cached
// objects.
func newTestRun(t testing.TB, objects int) *run[*corev1.ConfigMap] {
	t.Helper()
	i, err := tidings.NewInformer(memorySource{objects}, tidings.InformerOptions[*corev1.ConfigMap]{
		Resource: schema.GroupResource{Resource: "configmaps"},
	})
	if err != nil {
		t.Fatal(err)
	}
	go i.Run(t.Context()) //nolint:errcheck // it ends with the test
	if err := i.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := New(i, Options[*corev1.ConfigMap]{Name: "test"},
		func(context.Context, Request[*corev1.ConfigMap]) (Result, error) { return Result{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.begin(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.informers.Primary().Resolved(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.informers.Primary().Admitted.Store(true)
	return r
}

// TestC12_AnEventWhileItsCallEnds: the event is read before the writes of the call are recorded, and
// leads to a call afterwards.
func TestC12_AnEventWhileItsCallEnds(t *testing.T) {
	r := newTestRun(t, 1)
	ch := change{Event: barrier.Event{State: caches.State{ObjectID: caches.ObjectID{Key: "a/x0"}, Version: "2"}}, reason: reason{key: "a/x0", cause: Updated}}
	r.intake.tellBarrier(&ch)
	r.barrier.Record("a/x0", barrier.NoSlot, []guard.Write{{
		Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "a", Name: "x0",
		UID: types.UID(fmt.Sprintf("%036d", 0)), Version: "2", Sent: time.Now(),
	}}, nil, r.c.informers.All)
	r.intake.addServed("a/x0", &ch)
	item, ok := r.queue.Get(0, nil)
	if !ok || len(item.Reasons) != 1 || !item.Reasons[0].Reason.own {
		t.Errorf("the reasons of the call are %+v", item.Reasons)
	}
}

// TestC03_HeldKeysStayParked: when a key is due, the server is asked about it, and the key is not
// queued for that.
func TestC03_HeldKeysStayParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 100
		r := newTestRun(t, keys)
		for i := range keys {
			key := fmt.Sprint("a/x", i)
			r.barrier.Record(key, barrier.NoSlot, []guard.Write{{
				Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "a",
				Name: fmt.Sprint("x", i), Version: "2", Sent: time.Now(),
			}}, nil, r.c.informers.All)
			r.queue.Add(key, queue.Ask[reason]{})
			item, _ := r.queue.Get(0, nil)
			r.workers.step(0, item)
		}
		for n := range 100 {
			if st := r.queue.Stats(); st.Parked != keys {
				t.Fatalf("after %d times: %d keys are parked, want %d", n, st.Parked, keys)
			}
			<-r.barrier.Alarm()
			if wake := r.barrier.CheckDue(); len(wake) > 0 {
				t.Errorf("CheckDue: wake %v", wake)
			}
		}
		for i := range keys {
			r.barrier.Event(&barrier.Event{State: caches.State{
				ObjectID: caches.ObjectID{Key: fmt.Sprint("a/x", i)}, Version: "2",
			}})
		}
	})
}

// TestTheQueueIsOutOfStep ends a call of a key that does not run for the queue. No other test
// leads to this line of docs/logs.md.
func TestTheQueueIsOutOfStep(t *testing.T) {
	r, lines := newTestRun(t, 1), logtable.New("controller")
	r.workers.logger = lines.Logger().With("controller", "test")
	r.workers.step(0, queue.Item[reason]{Key: "a/x0"})
	const line = "Error | `the queue is out of step` | `key`, `error`"
	if kinds := lines.Kinds(); kinds[line] != 1 {
		t.Errorf("the lines are %v", kinds)
	}
	page, err := os.ReadFile("../docs/logs.md")
	if err != nil || !strings.Contains(string(page), "| "+line+" |") {
		t.Errorf("the page does not have %q: %v", line, err)
	}
}

// TestC01_AWorkerThatIsNeededAgain stays, though the queue has sent it away.
func TestC01_AWorkerThatIsNeededAgain(t *testing.T) {
	r := newTestRun(t, 1)
	r.workers.n, r.workers.alive[1] = 2, true
	if r.workers.leaves(1) || !r.workers.alive[1] {
		t.Error("the worker left")
	}
	r.workers.n = 1
	if !r.workers.leaves(1) || r.workers.alive[1] {
		t.Error("the worker stayed")
	}
}

// BenchmarkC02_EmptyCall measures an event of an object, and a call that does nothing.
func BenchmarkC02_EmptyCall(b *testing.B) {
	r := newTestRun(b, 1000)
	f := r.c.informers.Primary()
	var reasons []queue.Counted[reason]
	var events []tidings.Event[*corev1.ConfigMap]
	for _, object := range r.c.primary.Lister().All() {
		e := tidings.Event[*corev1.ConfigMap]{Type: tidings.Updated, Old: object, New: object}
		events = append(events, e)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.intake.changed(f, events[i%len(events)])
		item, _ := r.queue.Get(0, reasons[:0])
		reasons = item.Reasons
		r.workers.step(0, item)
	}
}

// BenchmarkC02_Memory measures the memory of a controller for each key that it has called.
func BenchmarkC02_Memory(b *testing.B) {
	const keys = 100_000
	r := newTestRun(b, keys)
	var before, after runtime.MemStats
	for b.Loop() {
		r.incarnations = incarnation.New[*corev1.ConfigMap]()
		runtime.GC()
		runtime.ReadMemStats(&before)
		for key, object := range r.c.primary.Lister().All() {
			r.incarnations.Begin(key, func() (*corev1.ConfigMap, bool) { return object, true })
			r.incarnations.Succeeded(key, object.ResourceVersion)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/keys, "B/key")
}
