package shard

import (
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

// TestS3_ASlotThatCannotBeFilledHoldsUpNoOther: no member can list the objects of slot 7 any more,
// as when the rights for a namespace are gone. Its owner crashes.
func TestS3_ASlotThatCannotBeFilledHoldsUpNoOther(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		all := map[*process]bool{a: true, b: true, c: true}
		for p := range all {
			p.set(func(p *process) { p.unlistable = slot.Of(7) })
		}
		for p := range all {
			if p.calls().Has(7) {
				p.crash()
				delete(all, p)
			}
		}
		time.Sleep(takeOverBound + 10*time.Second)
		n := 0
		for p := range all {
			n += p.serves()
		}
		if n != Count-1 {
			t.Errorf("%d slots are served", n)
		}
		time.Sleep(10 * time.Minute)
		for p := range all {
			n -= p.serves()
		}
		if n != 0 {
			t.Errorf("%d more slots are not served after ten minutes", n)
		}
		for p := range all {
			p.set(func(p *process) { p.unlistable = Set{} })
		}
		time.Sleep(15 * time.Minute)
		n = 0
		for p := range all {
			n += p.serves()
		}
		if n != Count {
			t.Errorf("%d slots are served once all can be listed", n)
		}
	})
}

// TestS1_AMemberThatJoinsGetsTheSlotsThatCanBeFilled: no member can list the objects of slot 7 any
// more.
func TestS1_AMemberThatJoinsGetsTheSlotsThatCanBeFilled(t *testing.T) {
	bubble(t, func(w *world) {
		unlistable := func(p *process) { p.unlistable = slot.Of(7) }
		a, b, c := w.three()
		for _, p := range []*process{a, b, c} {
			p.set(unlistable)
		}
		d := w.start("d", "1", unlistable)
		time.Sleep(30 * time.Minute)
		w.wantServing("after half an hour", 51, 77, a, b, c, d)
	})
}

// TestS7_SlotsThatComeSoonAfterOneAnotherShareAList: a second one would take as long as the first.
func TestS7_SlotsThatComeSoonAfterOneAnotherShareAList(t *testing.T) {
	c := newCrowdOf(t, 2)
	now := c.g.now()
	c.m.want(1)
	c.m.startWarms(now)
	c.m.want(3)
	c.m.startWarms(now.Add(gathers / 2))
	comes := func() (calls []Set) { // beside those of what it owns
		for _, w := range c.m.calls {
			if !w.isOwned {
				calls = append(calls, w.entries)
			}
		}
		return calls
	}
	if got := comes(); len(got) > 0 {
		t.Errorf("%v are listed at once", got)
	}
	c.m.startWarms(now.Add(gathers))
	if got := comes(); !slices.Equal(got, []Set{slot.Of(1).Union(slot.Of(3))}) {
		t.Errorf("the lists are %v", got)
	}
	c.m.running.Wait()
	c.m.term.End(errLeft)
}
