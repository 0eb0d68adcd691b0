package contract_test

import (
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// faultsOfParts are those that meet one of several namespaces, or the list of slots that come.
func faultsOfParts() []faultRow {
	two := &tidings.Selection{Namespaces: []string{"default", "other"}}
	return []faultRow{
		// A namespace that cannot be read holds up no other one.
		{name: "Refuse 403 for one of two namespaces", covers: "Refuse", selection: two,
			test: func(w *world) { w.oneNamespaceRefused(func() {}) }},
		// Slots come in the namespaces that can be read, and in the others with their first list.
		{name: "Refuse 403 for one of two namespaces, and slots that come", covers: "Refuse",
			selection: two, slots: true, test: slotsComeBesideARefusal},
		// The list of slots that come is old when it arrives. The watch has gone on.
		{name: "Stall of the list of slots that come", covers: "Stall", slots: true, test: oldListOfSlots},
		// A page is requested again, and the pages before it stay.
		{name: "Refuse a page of the list of slots that come", covers: "Refuse", options: paged, slots: true,
			test: func(w *world) { w.pageOfSlots(apisim.Refuse(429, time.Second)) }},
		{name: "CutWithin a page of the list of slots that come", covers: "CutWithin", options: paged, slots: true,
			test: func(w *world) { w.pageOfSlots(apisim.CutWithin(1)) }},
	}
}

// oneNamespaceRefused refuses the requests for a namespace from the beginning, calls meanwhile, and
// refuses them no more.
func (w *world) oneNamespaceRefused(meanwhile func()) {
	w.Helper()
	w.haveNamespaces("other")
	w.createIn("default", "a", "1")
	w.createIn("other", "b", "1")
	refusal := w.inject(apisim.Match{Namespace: "other"}, apisim.Refuse(403, 0))
	w.startFactory()
	w.after(time.Minute)
	meanwhile()
	w.createIn("default", "c", "1")
	synctest.Wait()
	for _, key := range []string{"default/a", "default/c"} {
		if w.probe.get(key) == "" {
			w.Errorf("the cache lacks %s, of the namespace that can be read", key)
		}
	}
	if state := w.health().Namespaces["other"].State; state != tidings.StateForbidden {
		w.Errorf("the other namespace is %s", state)
	}
	refusal.Lift()
	w.after(10 * time.Minute)
	w.holds("default", "other")
}

// slotsComeBesideARefusal removes all slots, and adds them while a namespace cannot be read.
func slotsComeBesideARefusal(w *world) {
	w.slots.Remove(tidings.AllSlots())
	w.oneNamespaceRefused(func() {
		began := time.Now()
		w.must(w.slots.Add(w.ctx, tidings.AllSlots()))
		if took := time.Since(began); took > time.Second {
			w.Errorf("Add took %v", took)
		}
	})
}

// oldListOfSlots changes objects while the list of their slots is on its way.
func oldListOfSlots(w *world) {
	s := &slotted{world: w, slots: w.slots}
	s.slots.Remove(half(1))
	s.have(40)
	l := s.follow()
	s.start()
	s.inject(firstList, apisim.Stall(1, 10*time.Second))
	added := make(chan error, 1)
	go func() { added <- s.slots.Add(s.ctx, half(1)) }()
	s.after(time.Second)
	for _, name := range []string{"o000", "o001", "o002", "o003", "o004", "o005"} {
		s.update(name, "1")
		s.remove("o01" + name[3:])
		s.remove("o02" + name[3:])
		s.create("o02"+name[3:], "1")
	}
	s.after(time.Minute)
	s.must(<-added)
	s.agree(l)
}

// pageOfSlots fails one page of the list of slots that come.
func (w *world) pageOfSlots(fault apisim.Fault) {
	s := &slotted{world: w, slots: w.slots}
	s.slots.Remove(half(1))
	s.have(40)
	l := s.follow()
	s.start()
	s.inject(apisim.Match{Verb: "list", Page: 15}.Nth(1), fault)
	began := time.Now()
	s.must(s.slots.Add(s.ctx, half(1)))
	if took := time.Since(began); took > time.Minute {
		s.Errorf("Add took %v", took)
	}
	synctest.Wait()
	s.agree(l)
}
