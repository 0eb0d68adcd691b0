package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// managed returns the objects in the cache of a manager: pods in protobuf, and custom types in
// JSON.
func managed() []server.Spec {
	specs := []server.Spec{{
		Kind: objects.Pods, Objects: pick(400, 5_000, 50_000), Encoding: server.Protobuf,
	}}
	for number := range pick(3, objects.DatabaseTypes, objects.DatabaseTypes) {
		specs = append(specs, server.Spec{
			Kind: objects.DatabasesOf(number), Objects: pick(100, 200, 2_000), Encoding: server.JSON,
		})
	}
	return specs
}

// BenchmarkManager is the cache of a manager of controller-runtime, with a handler for each type.
func BenchmarkManager(b *testing.B) {
	for _, c := range []struct {
		name    string
		prepare func(*server.Spec)
		run     func(*testing.B, *managedCache)
	}{
		{"start", func(*server.Spec) {}, managerStart},
		{"reads", func(*server.Spec) {}, managerReading},
		{"updates", func(s *server.Spec) { s.Updates = 2 * s.Objects }, managerUpdates},
		{"relist", func(s *server.Spec) { s.Relist = true }, managerRelist},
	} {
		specs := managed()
		for i := range specs {
			c.prepare(&specs[i])
		}
		name := fmt.Sprintf("pods=%d/types=%d/objects=%d/%s", specs[0].Objects, len(specs)-1,
			specs[1].Objects, c.name)
		onStacks(b, name, specs, stack.Managers(),
			func(b *testing.B, s stack.Stack, t stack.Target) {
				c.run(b, &managedCache{
					specs: specs, stack: s, url: t.URL, scheme: objects.Scheme(),
				})
			})
	}
}

// managedCache is the cache of a manager.
type managedCache struct {
	cache.Cache
	specs  []server.Spec
	stack  stack.Stack
	url    string
	scheme *runtime.Scheme
	stop   func()
}

// start makes and runs the cache until its handlers were notified of everything. handler returns
// the handler of the objects of a spec.
func (c *managedCache) start(b *testing.B, handler func(server.Spec) stack.Handler) {
	b.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, spec := range c.specs {
		gvr := spec.Kind.Resource()
		mapper.AddSpecific(spec.Kind.GroupVersionKind(), gvr, gvr, meta.RESTScopeNamespace)
	}
	var err error
	config := &rest.Config{Host: c.url, QPS: -1}
	c.Cache, err = c.stack.NewCache(config, cache.Options{Scheme: c.scheme, Mapper: mapper})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	c.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
	wait, done := context.WithTimeout(ctx, waitLimit)
	defer done()
	var synced []toolscache.ResourceEventHandlerRegistration
	for _, spec := range c.specs {
		informer, err := c.GetInformer(wait, c.object(b, spec), cache.BlockUntilSynced(false))
		if err != nil {
			b.Fatal(err)
		}
		r, err := informer.AddEventHandler(stack.EventHandler[objects.Object](handler(spec)))
		if err != nil {
			b.Fatal(err)
		}
		synced = append(synced, r)
	}
	for _, r := range synced {
		await(b, r.HasSyncedChecker().Done(), func() string { return "a handler is not synced" })
	}
}

// object returns an object of the Go type of a spec's objects, and list a list of them.
func (c *managedCache) object(b *testing.B, spec server.Spec) objects.Object {
	return c.made(b, spec, "").(objects.Object)
}

func (c *managedCache) list(b *testing.B, spec server.Spec) client.ObjectList {
	return c.made(b, spec, "List").(client.ObjectList)
}

func (c *managedCache) made(b *testing.B, spec server.Spec, suffix string) runtime.Object {
	gvk := spec.Kind.GroupVersionKind()
	gvk.Kind += suffix
	o, err := c.scheme.New(gvk)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// objects counts the objects of all specs.
func (c *managedCache) objects() (n int) {
	for _, spec := range c.specs {
		n += spec.Objects
	}
	return n
}

// ignore is a handler that does nothing.
func ignore(server.Spec) stack.Handler { return func(stack.Change, tidings.Object, tidings.Object) {} }

// managerStart is the start of the cache.
func managerStart(b *testing.B, c *managedCache) {
	before := measure.LiveHeap()
	var notified atomic.Int64
	used := measure.Of(b, func() {
		c.start(b, func(server.Spec) stack.Handler {
			return func(stack.Change, tidings.Object, tidings.Object) { notified.Add(1) }
		})
	})
	highest, after := measure.Peak(b), measure.LiveHeap()
	if n := int(notified.Load()); n != c.objects() {
		b.Fatalf("the handlers have %d notifications, want %d", n, c.objects())
	}
	for _, spec := range c.specs {
		o, last := c.object(b, spec), spec.Kind.New(spec.Objects-1)
		err := c.Get(b.Context(), client.ObjectKeyFromObject(last), o)
		if err != nil || o.GetUID() != last.GetUID() {
			b.Fatalf("the last of %s is not cached as it was made: %v", spec.Kind, err)
		}
	}
	used.Report(b, c.objects(), "object")
	b.ReportMetric(float64(used.CPU), "start-cpu-ns")
	b.ReportMetric(after-before, "heap-B")
	b.ReportMetric(highest, "peak-B")
	c.stop()
}

// managerReading is one goroutine that gets objects, and lists those of a label that one in a
// hundred has and those of a namespace, with and without copies.
func managerReading(b *testing.B, c *managedCache) {
	c.start(b, ignore)
	duration := pick(5*time.Millisecond, 50*time.Millisecond, 2*time.Second)
	inNamespace := client.InNamespace(objects.Namespace(0))
	labelled := client.MatchingLabels{selectedLabel: objects.Track(0)}
	for _, spec := range c.specs[:2] { // pods and one custom type
		replicas := map[objects.Kind]int{
			objects.Pods: objects.Replicas, objects.Databases: objects.Instances,
		}[spec.Kind]
		tracked, inside := 0, 0
		for i := range spec.Objects {
			if objects.Track(i/replicas) == objects.Track(0) {
				tracked++
			}
			if objects.Namespace(i/replicas) == objects.Namespace(0) {
				inside++
			}
		}
		for read, r := range map[string]reads{
			"get":            c.gets(b, spec),
			"label":          c.lists(b, spec, tracked, labelled),
			"label-uncopied": c.lists(b, spec, tracked, labelled, client.UnsafeDisableDeepCopy),
			"namespace":      c.lists(b, spec, inside, inNamespace),
			"namespace-uncopied": c.lists(b, spec, inside, inNamespace,
				client.UnsafeDisableDeepCopy),
		} {
			r.run(b, 0, 1) // the first list by a label makes an index
			n, used := r.run(b, duration, 1)
			b.ReportMetric(float64(n)/used.Wall.Seconds(), readUnit(spec.Kind, read))
		}
	}
	c.stop()
}

// readUnit returns the unit of a read of managerReading.
func readUnit(kind objects.Kind, read string) string {
	return fmt.Sprintf("%s-%s-reads/s", kind, read)
}

// managerReads returns the units of managerReading.
func managerReads() (units []string) {
	for _, kind := range []objects.Kind{objects.Pods, objects.Databases} {
		for _, read := range []string{
			"get", "label", "label-uncopied", "namespace", "namespace-uncopied",
		} {
			units = append(units, readUnit(kind, read))
		}
	}
	return units
}

// gets returns the reads of one object after another.
func (c *managedCache) gets(b *testing.B, spec server.Spec) reads {
	keys := make([]client.ObjectKey, spec.Objects)
	for i := range keys {
		keys[i] = client.ObjectKeyFromObject(spec.Kind.New(i))
	}
	return reads{func(i int) int {
		o := c.object(b, spec)
		if err := c.Get(b.Context(), keys[i*7919%len(keys)], o); err != nil {
			return 0
		}
		return 1
	}, 1}
}

// lists returns the reads that list so many objects.
func (c *managedCache) lists(
	b *testing.B, spec server.Spec, want int, o ...client.ListOption,
) reads {
	return reads{func(int) int {
		list := c.list(b, spec)
		if err := c.List(b.Context(), list, o...); err != nil {
			return -1
		}
		return meta.LenList(list)
	}, want}
}

// managerUpdates is new states of all objects, as fast as the cache takes them, until each handler
// was notified of the last state of each object.
func managerUpdates(b *testing.B, c *managedCache) {
	last, updates := newLastStates(c.objects()), 0
	c.start(b, func(spec server.Spec) stack.Handler {
		updates += spec.Updates
		return last.handler(spec.Updates, spec.Objects)
	})
	last.measure(b, c.url, updates)
	c.stop()
}

// managerRelist is watches that end with 410 Gone at once, and the lists after it.
func managerRelist(b *testing.B, c *managedCache) {
	var want server.Counts
	for _, spec := range c.specs {
		after := server.After(spec.Objects)
		want.Deleted += after.Deleted
		want.Changed += after.Changed
		want.Added += after.Added
	}
	changes := relistChanges{want: want, done: make(chan struct{})}
	c.start(b, func(server.Spec) stack.Handler { return changes.handle })
	steady := measure.ResidentSet(b)
	measure.ResetPeak(b)
	changes.begin()
	used := measure.Of(b, func() {
		post(b, c.url+"/relist")
		await(b, changes.done, changes.String)
	})
	highest := measure.Peak(b)
	b.ReportMetric(highest/steady, "peak/steady")
	b.ReportMetric(max(highest-steady, 0), "above-steady-B")
	b.ReportMetric(float64(used.Wall), "last-change-ns")
	b.ReportMetric(float64(used.CPU), "cpu-ns")
	c.stop()
}
