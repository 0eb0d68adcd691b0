package contract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestS6_RemoveDuringAdd removes slots while others are listed. They leave at once.
func TestS6_RemoveDuringAdd(t *testing.T) {
	withSlots(t, tidings.FactoryOptions{}, half(0), func(s *slotted) {
		s.have(40)
		l := s.follow()
		s.start()
		s.server.Inject(apisim.Match{Verb: "list"}.Nth(1), apisim.Delay(time.Minute))
		added := make(chan error, 1)
		go func() { added <- s.slots.Add(s.ctx, half(1)) }()
		s.after(time.Second)
		s.slots.Remove(half(0))
		synctest.Wait()
		if got := len(s.probe.state()); got != 0 {
			s.Errorf("%d objects have not left", got)
		}
		s.movedAlone(l)
		s.must(<-added)
		synctest.Wait()
		s.agree(l)
	})
}

// TestS6_MovedIsNotDeletedByAList removes slots while an Add waits for a list, which does not have
// their objects.
func TestS6_MovedIsNotDeletedByAList(t *testing.T) {
	withSlots(t, tidings.FactoryOptions{}, half(0), func(s *slotted) {
		s.have(40)
		l := s.follow()
		s.start()
		l.Take()
		s.server.Inject(apisim.Match{}, apisim.Delay(10*time.Second))
		s.server.CutConnections()
		s.server.Compact()
		s.after(15 * time.Second)
		added := make(chan error, 1)
		go func() { added <- s.slots.Add(s.ctx, half(1)) }()
		s.after(time.Second)
		s.slots.Remove(half(0))
		s.settle()
		s.must(<-added)
		s.agree(l)
		s.movedAlone(l)
	})
}

// TestS6_AddToAnAbsentResource adds slots to an optional informer of a resource that the server
// does not have.
func TestS6_AddToAnAbsentResource(t *testing.T) {
	for name, ask := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, ask, tidings.FactoryOptions{}, apisim.Options{})
				defer w.end()
				s := &slotted{world: w, slots: tidings.NewSlots(tidings.ByUID, half(0))}
				w.probe = w.ask(t, w.factory, tidings.Selection{
					Namespace: "default", Slots: s.slots, Optional: true,
				})
				s.have(40)
				l := s.follow()
				w.gate.set(refuse(404, "NotFound"))
				s.start()
				ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
				defer cancel()
				s.must(s.slots.Add(ctx, half(1)))
				w.gate.set(nil)
				s.after(10 * time.Minute)
				s.agree(l)
			})
		})
	}
}

// TestS6_AddWhileAHandlerBlocks adds and removes slots while a handler blocks the informer, and its
// queue is full.
func TestS6_AddWhileAHandlerBlocks(t *testing.T) {
	const objects = 40
	withSlots(t, tidings.FactoryOptions{}, half(0), func(s *slotted) {
		s.have(objects)
		l := &ledger{w: s.world}
		s.followers = append(s.followers, l)
		l.registration = s.probe.handle(l.Handle, tidings.HandlerOptions{Policy: tidings.PolicyBlock, Limit: 1})
		s.start()
		l.Block()
		for i := 0; s.probe.informer().Health().Queued < 10_000 && i < 1000; i++ {
			for o := range objects {
				s.update(fmt.Sprintf("o%03d", o), fmt.Sprint(i))
			}
			synctest.Wait()
		}
		for o := range objects {
			s.update(fmt.Sprintf("o%03d", o), "last")
		}
		synctest.Wait()
		for _, before := range []func(){func() {}, func() { s.slots.Remove(half(0)) }} {
			before()
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			began := time.Now()
			err := s.slots.Add(ctx, half(1))
			cancel()
			if err == nil || !strings.Contains(err.Error(), "deadline") || time.Since(began) > time.Second {
				t.Errorf("Add has returned after %v with %v", time.Since(began), err)
			}
		}
		l.Unblock()
		s.must(s.slots.Add(s.ctx, half(1)))
		synctest.Wait()
		s.agree(l)
	})
}
