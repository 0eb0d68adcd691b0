package work

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// idle is many informers of few objects to which nothing happens.
type idle struct{}

func (idle) Name() string { return "idle" }

func (idle) Cases(s Size) []Case {
	return []Case{{
		Work: "idle", Seed: seed, Objects: 10, Informers: pick(s, 10, 200, 1_000), Handlers: 2,
		Duration: pick(s, 10*time.Millisecond, time.Second, 10*time.Second),
	}}
}

func (idle) Run(ctx context.Context, r Run) (m Metrics, err error) {
	pods := feed.Pods(r.Seed, r.Objects)
	before, stacks, goroutines := measure.Heap(), measure.Stacks(), runtime.NumGoroutine()
	resident, err := measure.Resident()
	if err != nil {
		return nil, err
	}
	var told atomic.Int64
	count := stack.Handler{Add: func(metav1.Object) { told.Add(1) }}
	handlers := make([]stack.Handler, r.Handlers)
	for i := range handlers {
		handlers[i] = count
	}
	informers := make([]*running, r.Informers)
	for i := range informers {
		if informers[i], err = fromMemory(ctx, r.Stack, feed.New(pods), stack.Options{}, handlers...); err != nil {
			return nil, err
		}
	}
	if want := int64(r.Informers * r.Handlers * r.Objects); told.Load() != want {
		return nil, fmt.Errorf("idle: the handlers were told %d times, want %d", told.Load(), want)
	}
	usage, err := measure.Of(func() error {
		select {
		case <-time.After(r.Duration):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return nil, err
	}
	// Each informer is run by one goroutine of the benchmark, which is the stack's own
	// where its factory makes it, so it counts.
	m.add("goroutines per informer", "", float64(runtime.NumGoroutine()-goroutines)/float64(r.Informers))
	m.bytes("heap per informer", measure.Heap(), before, r.Informers)
	m.bytes("stacks per informer", measure.Stacks(), stacks, r.Informers)
	after, err := measure.Resident()
	if err != nil {
		return nil, err
	}
	m.bytes("resident set per informer", after, resident, r.Informers)
	m.add("CPU a second, all informers", "s", usage.CPU.Seconds()/usage.Wall.Seconds())
	for _, informer := range informers {
		if n := informer.Len(); n != r.Objects {
			return nil, fmt.Errorf("idle: %d objects are cached, want %d", n, r.Objects)
		}
		if err := informer.stop(); err != nil {
			return nil, err
		}
	}
	return m, nil
}
