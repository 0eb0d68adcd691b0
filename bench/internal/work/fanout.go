package work

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// fanOut is updates from memory to handlers that do next to nothing: first as fast as
// they are taken, then one at a time.
type fanOut struct{}

func (fanOut) Name() string { return "fan-out" }

func (fanOut) Cases(s Size) []Case {
	var cases []Case
	for _, handlers := range []int{1, 10, 50, 200} {
		// About as many notifications for any number of handlers, in whole rounds.
		c := Case{Work: "fan-out", Seed: seed, Objects: pick(s, 100, 1_000, 10_000), Handlers: handlers, Paced: pick(s, 20, 200, 3_000)}
		round := Run{Case: c}.round()
		notifications := pick(s, 1, 100_000, 4_000_000)
		c.Events = min(max(notifications/handlers/round, 1), 80) * round
		cases = append(cases, c)
	}
	return cases
}

func (fanOut) Run(ctx context.Context, r Run) (m Metrics, err error) {
	pods := feed.Pods(r.Seed, r.Objects)
	usage, err := throughput(ctx, r, feed.New(pods))
	if err != nil {
		return nil, err
	}
	notifications := r.Events * r.Handlers
	m.seconds("CPU per notification", usage.CPU, notifications)
	m.rate("notifications a second", notifications, usage.Wall)
	m.bytes("allocated per notification", usage.Bytes, 0, notifications)
	took, err := latencies(ctx, r, feed.New(pods))
	if err != nil {
		return nil, err
	}
	m.seconds("store to handler, p50", percentile(took, 50), 1)
	m.seconds("store to handler, p99", percentile(took, 99), 1)
	return m, nil
}

// throughput measures updates in rounds, each as fast as it is taken. Making them is not
// measured.
func throughput(ctx context.Context, r Run, f *feed.Feed) (sum measure.Usage, err error) {
	counters := make([]*counter, r.Handlers)
	for i := range counters {
		counters[i] = newCounter()
	}
	informer, err := fromMemory(ctx, r.Stack, f, stack.Options{}, handlersOf(counters)...)
	if err != nil {
		return sum, err
	}
	for sent := 0; sent < r.Events; sent += r.round() {
		batches := updates(f, sent, r.round(), r.Objects)
		usage, err := measure.Of(func() error { return send(ctx, f, batches, r.round(), counters...) })
		if err != nil {
			return sum, err
		}
		sum = sum.Add(usage)
	}
	if err := informer.stop(); err != nil {
		return sum, err
	}
	for i, c := range counters {
		if told, want := c.told.Load(), int64(r.Objects+r.Events); told != want {
			return sum, fmt.Errorf("fan-out: handler %d was told %d times, want %d", i, told, want)
		}
	}
	return sum, nil
}

// latencies measures the time from the store, where an index function is the first to see
// a new state, to the call of each handler, with updates a millisecond apart.
func latencies(ctx context.Context, r Run, f *feed.Feed) ([]time.Duration, error) {
	events := make([]feed.Event, r.Paced)
	for i := range events {
		events[i] = f.Update(i % r.Objects)
	}
	clock, err := newStamps(events)
	if err != nil {
		return nil, err
	}
	counters := make([]*counter, r.Handlers)
	handlers := make([]stack.Handler, r.Handlers)
	took := make([][]time.Duration, r.Handlers)
	for i := range counters {
		counters[i], took[i] = newCounter(), make([]time.Duration, 0, r.Paced)
		handlers[i].Update = func(_, after metav1.Object) {
			took[i] = append(took[i], clock.since(after))
			counters[i].one()
		}
	}
	informer, err := fromMemory(ctx, r.Stack, f, stack.Options{Indexes: map[string]func(metav1.Object) []string{"stamp": clock.stamp}}, handlers...)
	if err != nil {
		return nil, err
	}
	for _, c := range counters {
		c.expect(int64(r.Paced))
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := range events {
		<-tick.C
		if err := f.Send(ctx, events[i:i+1]); err != nil {
			return nil, err
		}
	}
	for _, c := range counters {
		if err := c.await(ctx); err != nil {
			return nil, err
		}
	}
	if err := informer.stop(); err != nil {
		return nil, err
	}
	return slices.Concat(took...), clock.missed()
}

// stamps notes when the store first saw each of a row of versions.
type stamps struct {
	start time.Time
	first int
	at    []atomic.Int64 // nanoseconds after start, 0 while unseen

	mu  sync.Mutex
	err error // the first failure
}

func newStamps(events []feed.Event) (*stamps, error) {
	first, err := strconv.Atoi(events[0].Version)
	return &stamps{start: time.Now(), first: first, at: make([]atomic.Int64, len(events))}, err
}

// stamp is an index function without values.
func (s *stamps) stamp(o metav1.Object) []string {
	if slot := s.slot(o); slot != nil {
		slot.CompareAndSwap(0, int64(time.Since(s.start)))
	}
	return nil
}

// slot returns where the time of an object's version stands, nil for those of the initial
// set.
func (s *stamps) slot(o metav1.Object) *atomic.Int64 {
	version, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil || version < s.first || version >= s.first+len(s.at) {
		return nil
	}
	return &s.at[version-s.first]
}

// since returns how long ago the store saw the object.
func (s *stamps) since(o metav1.Object) time.Duration {
	now := time.Since(s.start)
	slot := s.slot(o)
	if slot == nil || slot.Load() == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = fmt.Errorf("fan-out: a handler was told of version %s before the index was", o.GetResourceVersion())
		return 0
	}
	return now - time.Duration(slot.Load())
}

// missed returns an error if a handler was ahead of the store.
func (s *stamps) missed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// percentile returns the value that p percent do not exceed, by nearest rank. It sorts
// all.
func percentile(all []time.Duration, p int) time.Duration {
	slices.Sort(all)
	return all[max((len(all)*p+99)/100, 1)-1]
}
