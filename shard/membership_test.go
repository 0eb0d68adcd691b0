package shard

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// TestS2_ADrainThatWasGivenUpDoesNotCount takes a hand-over back while calls run, and begins another
// one before the slot is served again.
func TestS2_ADrainThatWasGivenUpDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{w: &world{T: t}, name: "a", drainFor: time.Hour, calls: map[int]*span{}}
		g, err := newGroup(&rest.Config{}, p, Options{
			Namespace: "ops", Name: "rollout", Identity: "a", Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		m := newMembership(g, "a")
		m.term = lease.NewTerm(t.Context(), "ops/a", "a", g.times, g.clock, g.clock.Now())
		g.present = m
		p.Begin(&Term{m.term})
		see := func(e protocol.Entry) {
			g.mu.Lock()
			g.view.table, g.view.entries = new(coordinationv1.Lease), make([]protocol.Entry, Count)
			g.view.entries[0] = e
			g.view.sequence++
			c := m.reconcileLocked()
			g.mu.Unlock()
			m.make(c)
			synctest.Wait()
		}
		owned := protocol.Entry{Owner: "a", Epoch: 1}
		see(owned) // warms
		see(owned)
		if p.serves() != 1 {
			t.Fatalf("%d slots are served", p.serves())
		}
		see(protocol.Entry{Owner: "a", Epoch: 1, Next: "b", Ready: true})
		see(owned)
		see(protocol.Entry{Owner: "a", Epoch: 1, Next: "c", Ready: true})
		g.mu.Lock()
		if phase := m.member.Phase(0); phase != protocol.Draining || len(m.draining) != 1 {
			t.Errorf("the phase is %d while calls run, with %d drains", phase, len(m.draining))
		}
		g.mu.Unlock()
		m.term.End(errLeft)
		m.running.Wait()
	})
}

// TestS1_MovesThatFailAreNotTriedForAMinute has moves to one member whose outcome the planner has
// not observed: two changes of the map came at once.
func TestS1_MovesThatFailAreNotTriedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := newGroup(&rest.Config{}, new(process), Options{
			Namespace: "ops", Name: "rollout", Identity: "a",
		})
		if err != nil {
			t.Fatal(err)
		}
		g.view.table, g.view.entries = new(coordinationv1.Lease), make([]protocol.Entry, Count)
		g.view.entries[maxFailed] = protocol.Entry{Next: "b"} // this hand-over goes on
		for i := range maxFailed + 1 {
			g.plan.tried[protocol.Move{Entry: i, To: "b"}] = time.Now()
		}
		move := protocol.Move{Entry: 100, To: "b"}
		if in := g.inputLocked(g.view.kinds()[0]); !in.Avoid(move) || in.Avoid(protocol.Move{Entry: 100, To: "c"}) {
			t.Error("the plan goes on with a member to which moves fail, or with none")
		}
		delete(g.plan.tried, protocol.Move{Entry: 0, To: "b"})
		if in := g.inputLocked(g.view.kinds()[0]); in.Avoid(move) || !in.Avoid(protocol.Move{Entry: 1, To: "b"}) {
			t.Error("the plan avoids a member for few moves, or tries a move again at once")
		}
		time.Sleep(retry)
		if in := g.inputLocked(g.view.kinds()[0]); in.Avoid(protocol.Move{Entry: 1, To: "b"}) || len(g.plan.tried) > 0 {
			t.Error("a minute later a move is not tried again")
		}
	})
}
