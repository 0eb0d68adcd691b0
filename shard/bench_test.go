package shard

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// used returns the processor time of this process.
func used(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkRenewal is the cost, to one member, of the renewal of another one: that of its event,
// and of a turn of the loop if that follows. Once in a while a renewal says something new. The
// metric cpu-ns/op counts on a busy machine, too.
func BenchmarkRenewal(b *testing.B) {
	for _, n := range []int{8, 64, 256} {
		for name, every := range map[string]int{"says nothing new": 0, "another weight": 1} {
			b.Run(fmt.Sprintf("%d members, %s", n, name), func(b *testing.B) { benchmarkRenewals(b, n, every) })
		}
	}
}

func benchmarkRenewals(b *testing.B, n, every int) {
	c := newCrowdOf(b, n)
	before, i := used(b), 0
	for b.Loop() {
		i++
		weight := 0
		if every > 0 {
			weight = i / n / every
		}
		c.g.observe(c.renewed(1+i%(n-1), weight), false)
		select {
		case <-c.g.changed:
			c.m.turn(false)
		default:
		}
	}
	b.ReportMetric(float64(used(b)-before)/float64(b.N), "cpu-ns/op")
	c.m.term.End(errLeft)
}

// crowdOf is a membership beside others that are Leases alone.
type crowdOf struct {
	testing.TB
	n, version int
	g          *Group
	m          *membership
}

func newCrowdOf(t testing.TB, n int) *crowdOf {
	c := &crowdOf{TB: t, n: n}
	p := &process{w: &world{}, name: "m000", served: map[int]*served{}, ends: make(chan struct{})}
	g, err := newGroup(&rest.Config{}, p, Options{
		Namespace: "ops", Name: "rollout", Identity: "m000", Generation: "1", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.g, c.m = g, newMembership(g, c.id(0))
	c.m.term = lease.NewTerm(context.Background(), "ops/m000", string(c.id(0)), g.times, g.clock, g.clock.Now())
	c.m.said.mapUID = "uid"
	g.present = c.m
	p.Begin(&Term{c.m.term})
	for i := range n {
		g.observe(c.renewed(i, 0), false)
	}
	g.observe(c.table(), false)
	for range 3 {
		c.m.turn(false)
	}
	return c
}

func (c *crowdOf) id(i int) handover.ID { return handover.ID(fmt.Sprintf("rollout.m%03d", i)) }

// renewed returns the Lease of a member, whose slots have one of two weights.
func (c *crowdOf) renewed(i, weight int) *coordinationv1.Lease {
	c.version++
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: string(c.id(i)), ResourceVersion: fmt.Sprint(c.version),
		CreationTimestamp: metav1.NewTime(time.Unix(int64(1e9+i), 0)),
	}}
	lease.Take(l, l.Name, 15)
	r := handover.Record{
		Name: l.Name, Generation: "1", Map: "uid", State: handover.Takes, Weights: map[int]uint32{},
	}
	for k := i; k < Count; k += c.n {
		r.Weights[k] = uint32(100 + weight%2)
	}
	if err := writeRecord(l, r); err != nil {
		c.Fatal(err)
	}
	return l
}

// table returns the map, in which the members have equally many slots.
func (c *crowdOf) table() *coordinationv1.Lease {
	table := handover.Map{Entries: make([]handover.Entry, Count)}
	for k := range table.Entries {
		table.Entries[k] = handover.Entry{Owner: c.id(k % c.n), Epoch: 7, Left: handover.Reached, Weight: 100}
	}
	text, err := table.Encode()
	if err != nil {
		c.Fatal(err)
	}
	c.version++
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "rollout", UID: "uid", ResourceVersion: fmt.Sprint(c.version),
		Annotations: map[string]string{entriesAnnotation: text},
	}}
	lease.Take(l, holderOfMap("rollout"), 3600)
	return l
}
