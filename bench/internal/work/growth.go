package work

import (
	"context"
	"fmt"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// rounds makes the batches of one round of the run, after so many were made.
type rounds func(f *feed.Feed, done int) [][]feed.Event

// growth measures the heap while one handler of two does not return, for each policy of
// a stack.
type growth struct {
	run Run
	// at are the numbers of events after which the heap is looked at.
	at []int
	// perThing is how many events make one of the things that metrics speak of.
	perThing int
	things   string
	// kept names what one of them adds to the heap.
	kept string
	// feed returns a feed, and what makes its events.
	feed func() (*feed.Feed, rounds)
}

// heaps is what was found under one policy.
type heaps struct {
	marks   []uint64 // at the numbers of events that were reached
	last    uint64
	reached int // events
}

func (g growth) metrics(ctx context.Context) (m Metrics, err error) {
	without, err := g.grow(ctx, "", false)
	if err != nil {
		return nil, err
	}
	m.bytes("heap without a stuck handler", without.last, 0, 1)
	for i, policy := range g.run.Stack.Policies() {
		with, err := g.grow(ctx, policy, true)
		if err != nil {
			return nil, fmt.Errorf("%s, policy %q: %w", g.run.Work, policy, err)
		}
		suffix := ""
		if i > 0 {
			suffix = " (" + policy + ")"
		}
		for i, heap := range with.marks {
			m.bytes(fmt.Sprintf("heap after %s %s%s", thousands(g.at[i]/g.perThing), g.things, suffix), heap, 0, 1)
		}
		reached := with.reached / g.perThing
		m.bytes(g.kept+suffix, with.last, without.last, reached)
		m = append(m, Metric{Name: g.things + " within the heap limit" + suffix, Value: float64(reached), Better: Higher})
	}
	return m, nil
}

// grow sends rounds of events and measures the heap at the marks. It ends early where the
// heap grows over the limit. At the end the stuck handler goes on, and must come to know
// what the other knows. Without a stuck handler, the second mark is enough.
func (g growth) grow(ctx context.Context, policy string, stick bool) (h heaps, err error) {
	f, round := g.feed()
	good, held, told := newView(), newView(), newCounter()
	handlers := []stack.Handler{good.handler("", told.one)}
	end := g.at[min(1, len(g.at)-1)]
	if stick {
		handlers = append(handlers, held.handler(policy, func() {}))
		end = g.at[len(g.at)-1]
	}
	informer, err := fromMemory(ctx, g.run.Stack, f, stack.Options{}, handlers...)
	if err != nil {
		return h, err
	}
	held.hold()
	for over := false; h.reached < end && !over; {
		if err := send(ctx, f, round(f, h.reached), g.run.round(), told); err != nil {
			return h, err
		}
		h.reached += g.run.round()
		over = measure.Unswept() > g.run.HeapLimit && measure.Heap() > g.run.HeapLimit
		if h.reached == g.at[len(h.marks)] {
			h.marks = append(h.marks, measure.Heap())
		}
	}
	h.last = measure.Heap()
	if stick {
		if err := held.catchUp(ctx, good, stack.LeavesOut(policy)); err != nil {
			return h, err
		}
	}
	return h, informer.stop()
}
