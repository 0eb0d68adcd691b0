package work

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// updating is a watch over HTTP that brings new states as fast as the informer takes them.
type updating struct{}

func (updating) Name() string { return "updates" }

func (updating) Cases(s Size) []Case {
	n := pick(s, 200, 2_000, 10_000)
	spec := spec(objects.Pods, n, server.Protobuf, server.Streamed)
	spec.Updates = pick(s, 600, 6_000, 40_000)
	usual := Case{Work: "updates", Server: spec, Seed: seed, Objects: n, Handlers: 1, Events: spec.Updates}
	decoded := usual
	decoded.ListerWatcher = true
	return []Case{usual, decoded}
}

func (updating) Run(ctx context.Context, r Run) (m Metrics, err error) {
	if err := post(ctx, r.URL+"/reset"); err != nil {
		return nil, err
	}
	made, err := r.Stack.FromServer(r.target(), stack.Options{ListerWatcher: r.ListerWatcher})
	if err != nil {
		return nil, err
	}
	last := newLastStates(r.Objects, server.FirstUpdate+r.Events-r.Objects)
	informer, err := begin(ctx, made, last.handler())
	if err != nil {
		return nil, err
	}
	usage, err := measure.Of(func() error {
		if err := post(ctx, r.URL+"/updates"); err != nil {
			return err
		}
		return last.await(ctx)
	})
	if err != nil {
		return nil, err
	}
	m.rate("updates a second", r.Events, usage.Wall)
	m.seconds("CPU per update", usage.CPU, r.Events)
	m.add("allocations per update", "", float64(usage.Allocations)/float64(r.Events))
	m.bytes("allocated per update", usage.Bytes, 0, r.Events)
	m.add("updates that folded", "", float64(int64(r.Events)-last.told.Load()))
	return m, informer.stop()
}

// lastStates is a handler that is done when it was told of the last state of every object:
// states in between may fold where a handler is slow.
type lastStates struct {
	from int // the first of the versions of the last states
	left atomic.Int64
	told atomic.Int64
	done chan struct{}
}

func newLastStates(objects, from int) *lastStates {
	l := &lastStates{from: from, done: make(chan struct{})}
	l.left.Store(int64(objects))
	return l
}

func (l *lastStates) handler() stack.Handler {
	return stack.Handler{Update: func(_, after metav1.Object) {
		l.told.Add(1)
		if version, err := strconv.Atoi(after.GetResourceVersion()); err == nil && version >= l.from && l.left.Add(-1) == 0 {
			close(l.done)
		}
	}}
}

func (l *lastStates) await(ctx context.Context) error {
	patient := time.NewTimer(patience)
	defer patient.Stop()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-patient.C:
		return fmt.Errorf("updates: after %v and %d updates, the handler lacks the last state of %d objects", patience, l.told.Load(), l.left.Load())
	}
}
