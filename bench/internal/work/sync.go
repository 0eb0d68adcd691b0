package work

import (
	"context"
	"fmt"

	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// initialSync is the first list of an informer, over HTTP, until every handler has been
// told of every object.
type initialSync struct{}

func (initialSync) Name() string { return "sync" }

// Cases varies the number of pods in the usual way, and at one number everything else.
func (initialSync) Cases(s Size) []Case {
	var cases []Case
	add := func(handlers int, spec *server.Spec) {
		cases = append(cases, Case{Work: "sync", Server: spec, Seed: seed, Objects: spec.Objects, Handlers: handlers})
	}
	middle := pick(s, 300, 3_000, 50_000)
	for _, n := range pick(s, nil, nil, []int{10_000}) {
		add(1, spec(objects.Pods, n, server.Protobuf, server.Streamed))
	}
	add(1, spec(objects.Pods, middle, server.Protobuf, server.Streamed))
	add(20, spec(objects.Pods, middle, server.Protobuf, server.Streamed))
	add(1, spec(objects.Pods, middle, server.Protobuf, server.Paged))
	add(1, spec(objects.Pods, middle, server.JSON, server.Streamed))
	add(1, spec(objects.Pods, middle, server.JSON, server.Paged))
	for _, n := range pick(s, nil, nil, []int{200_000}) {
		add(1, spec(objects.Pods, n, server.Protobuf, server.Streamed))
	}
	decoded := Case{Work: "sync", Server: spec(objects.Pods, middle, server.Protobuf, server.Streamed), Seed: seed, Objects: middle, Handlers: 1, ListerWatcher: true}
	cases = append(cases, decoded)
	others := pick(s, 150, 1_000, 10_000)
	decoded.Server, decoded.Objects = spec(objects.Widgets, 2*others, server.JSON, server.Streamed), 2*others
	cases = append(cases, decoded)
	add(1, spec(objects.UnlikePods, others, server.Protobuf, server.Streamed))
	add(1, spec(objects.Deployments, others, server.Protobuf, server.Streamed))
	add(1, spec(objects.ConfigMaps, others, server.Protobuf, server.Streamed))
	add(1, spec(objects.Widgets, 2*others, server.JSON, server.Streamed))
	add(1, spec(objects.Widgets, 2*others, server.JSON, server.Paged))
	return cases
}

func (initialSync) Run(ctx context.Context, r Run) (m Metrics, err error) {
	if err := post(ctx, r.URL+"/reset"); err != nil {
		return nil, err
	}
	counters := make([]*counter, r.Handlers)
	for i := range counters {
		counters[i] = newCounter()
	}
	before := measure.Heap()
	var informer *running
	usage, err := measure.Of(func() error {
		made, err := r.Stack.FromServer(r.target(), stack.Options{ListerWatcher: r.ListerWatcher})
		if err != nil {
			return err
		}
		informer, err = begin(ctx, made, handlersOf(counters)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	peak, err := measure.Peak()
	if err != nil {
		return nil, err
	}
	after := measure.Heap()
	collection, err := measure.Collection()
	if err != nil {
		return nil, err
	}
	for i, c := range counters {
		if told := c.told.Load(); told != int64(r.Objects) {
			return nil, fmt.Errorf("sync: handler %d was told of %d objects, want %d", i, told, r.Objects)
		}
	}
	if n := informer.Len(); n != r.Objects {
		return nil, fmt.Errorf("sync: %d objects are cached, want %d", n, r.Objects)
	}
	last := r.Server.Kind.New(r.Seed, r.Objects-1)
	if cached, ok := informer.Get(last.GetNamespace() + "/" + last.GetName()); !ok || cached.GetUID() != last.GetUID() {
		return nil, fmt.Errorf("sync: object %d is not cached as it was made", r.Objects-1)
	}
	m.rate("objects a second", r.Objects, usage.Wall)
	m.seconds("CPU per object", usage.CPU, r.Objects)
	m.add("allocations per object", "", float64(usage.Allocations)/float64(r.Objects))
	m.bytes("allocated per object", usage.Bytes, 0, r.Objects)
	m.bytes("heap per cached object", after, before, r.Objects)
	m.bytes("peak resident set", peak, 0, 1)
	m.seconds("CPU of a full collection", collection, 1)
	return m, informer.stop()
}
