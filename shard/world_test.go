package shard

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

var leaseResource = leasetest.Resource

var dropped = apisim.Drop()

// by matches the requests of a process for Leases.
func by(name, verb string) apisim.Match { return leasetest.By(name, verb) }

// span is a time in which a process calls for an entry: a slot, or a controller of the world.
type span struct {
	entry      int
	process    string
	epoch      uint64
	begin, end time.Time // end is zero while it calls
	versions   map[string]string
}

// world is a server with the namespace of the Leases, and the record of the calls of all processes.
type world struct {
	*testing.T
	server *apisim.Server
	// restored reports whether there were several maps, whose epochs begin again.
	restored bool

	mu    sync.Mutex // guards the rest
	spans []*span
	// controllers are those that are led as a whole. Their entries follow those of the slots.
	controllers []string
	objects     [slot.Entries]int // of the entries
}

func newWorld(t *testing.T, o apisim.Options) *world {
	t.Helper()
	return &world{T: t, server: leasetest.Start(t, o)}
}

// bubble runs a test in a bubble with a world, and checks its spans at the end.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, apisim.Options{})
		test(w)
		w.check()
	})
}

// list adds controllers to those of the world.
func (w *world) list(names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if !slices.Contains(w.controllers, name) {
			w.controllers = append(w.controllers, name)
		}
	}
}

// begin records the begin of the calls of a process for an entry with the process's number.
func (w *world) begin(p *process, number int, o Owned) *span {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number >= Count {
		number = Count + slices.Index(w.controllers, p.leads[number-Count])
	}
	s := &span{entry: number, process: p.name, epoch: o.Epoch, begin: time.Now(), versions: o.Versions}
	w.spans = append(w.spans, s)
	return s
}

// end records the end of calls. A nil span has ended.
func (w *world) end(s *span) {
	if s == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.end = time.Now()
}

// weigh sets the number of objects of slots.
func (w *world) weigh(objects func(slot int) int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range Count {
		w.objects[i] = objects(i)
	}
}

func (w *world) objectsOf(entry int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects[entry]
}

// all returns the spans of all entries, in order.
func (w *world) all() [][]span {
	w.mu.Lock()
	defer w.mu.Unlock()
	spans := make([][]span, Count+len(w.controllers))
	for _, s := range w.spans { // in the order in which they began
		spans[s.entry] = append(spans[s.entry], *s)
	}
	return spans
}

// check checks that no two processes called for an entry at a time, and that epochs rose.
func (w *world) check() {
	w.Helper()
	for entry, spans := range w.all() {
		for i, s := range spans[min(1, len(spans)):] {
			before := spans[i]
			if before.end.IsZero() || s.begin.Before(before.end) {
				w.Fatalf("entry %d: %s called from %v to %v, and %s from %v", entry, before.process,
					before.begin, before.end, s.process, s.begin)
			}
			isAnother := s.epoch == before.epoch && s.process != before.process
			if !w.restored && (s.epoch < before.epoch || isAnother) {
				w.Fatalf("entry %d: %s has epoch %d after %d of %s", entry, s.process, s.epoch, before.epoch,
					before.process)
			}
		}
	}
}

// longestGap returns the longest time since a point in time in which no process called for a slot.
func (w *world) longestGap(since time.Time) (longest time.Duration) {
	for _, spans := range w.all()[:Count] {
		longest = max(longest, gap(spans, since))
	}
	return longest
}

func gap(spans []span, since time.Time) (longest time.Duration) {
	last := since
	for _, s := range spans {
		if !s.end.IsZero() && s.end.Before(since) {
			continue
		}
		longest = max(longest, s.begin.Sub(last))
		if last = s.end; s.end.IsZero() {
			last = time.Now()
		}
	}
	return max(longest, time.Since(last))
}

// covered waits until processes call for all slots, and returns the time until then.
func (w *world) covered(processes ...*process) time.Duration {
	w.Helper()
	began := time.Now()
	for range 2000 {
		synctest.Wait()
		n := 0
		for _, p := range processes {
			n += p.serves()
		}
		if n == Count {
			return time.Since(began)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, p := range processes {
		w.Logf("%s serves %d slots: %+v", p.name, p.serves(), p.Health())
	}
	w.Fatal("not all slots are called for after minutes")
	return 0
}

// led returns the processes of some that call for each controller, by its name.
func (w *world) led(processes ...*process) map[string]string {
	w.Helper()
	synctest.Wait()
	led := map[string]string{}
	for _, p := range processes {
		for _, name := range p.leadsNow() {
			led[name] = p.name
		}
	}
	return led
}

// wantLed checks that the processes call for all controllers.
func (w *world) wantLed(when string, processes ...*process) map[string]string {
	w.Helper()
	led := w.led(processes...)
	names := slices.Sorted(maps.Keys(led))
	if want := slices.Sorted(slices.Values(w.controllers)); !slices.Equal(names, want) {
		w.Errorf("%s: %v are led, want %v", when, led, want)
	}
	return led
}

// moved returns the number of times that each slot has changed its owner since a point in time.
func (w *world) moved(since time.Time) (moves [Count]int) {
	for i, spans := range w.all()[:Count] {
		for n, s := range spans {
			isNew := n == 0 || spans[n-1].epoch != s.epoch || spans[n-1].process != s.process
			if isNew && s.begin.After(since) {
				moves[i]++
			}
		}
	}
	return moves
}

// moves returns the number of all changes of owners of slots since a point in time.
func (w *world) moves(since time.Time) (sum int) {
	for _, n := range w.moved(since) {
		sum += n
	}
	return sum
}

// wantMoved checks how often slots have moved since a point in time: all of them, and each.
func (w *world) wantMoved(when string, since time.Time, most, each int) {
	w.Helper()
	if moves := w.moved(since); w.moves(since) > most || slices.Max(moves[:]) > each {
		w.Errorf("%s: %d moves, want at most %d, and %d of each slot: %v", when, w.moves(since), most,
			each, moves)
	}
}

// most returns the largest number of slots for which each process has called at a time, since a
// point in time.
func (w *world) most(since time.Time) map[string]int {
	type change struct {
		at      time.Time
		process string
		by      int
	}
	var changes []change
	for _, spans := range w.all()[:Count] {
		for _, s := range spans {
			if !s.end.IsZero() && s.end.Before(since) {
				continue
			}
			changes = append(changes, change{s.begin, s.process, 1})
			if !s.end.IsZero() {
				changes = append(changes, change{s.end, s.process, -1})
			}
		}
	}
	slices.SortFunc(changes, func(x, y change) int {
		if n := x.at.Compare(y.at); n != 0 {
			return n
		}
		return x.by - y.by // ends first
	})
	now, most := map[string]int{}, map[string]int{}
	for _, c := range changes {
		now[c.process] += c.by
		most[c.process] = max(most[c.process], now[c.process])
	}
	return most
}

// wantMost checks that no process has called for more slots at a time, since a point in time.
func (w *world) wantMost(when string, since time.Time, most int) {
	w.Helper()
	if got := w.most(since); slices.Max(slices.Collect(maps.Values(got))) > most {
		w.Errorf("%s: the processes had up to %v slots, want at most %d", when, got, most)
	}
}

// wantServing checks the numbers of slots that processes serve.
func (w *world) wantServing(when string, least, most int, processes ...*process) {
	w.Helper()
	synctest.Wait()
	for _, p := range processes {
		if n := p.serves(); n < least || n > most {
			w.Errorf("%s: %s serves %d slots, want between %d and %d", when, p.name, n, least, most)
		}
	}
}

func (w *world) wantBetween(name string, got, least, most time.Duration) {
	w.Helper()
	leasetest.WantBetween(w.T, name, got, least, most)
}

// two starts processes and waits until they share the slots.
func (w *world) two() (a, b *process) {
	w.Helper()
	a, b = w.start("a", "1"), w.start("b", "1")
	w.covered(a, b)
	time.Sleep(6 * time.Second) // the next renewals report it
	return a, b
}

// three starts processes and waits until they share the slots, for a while.
func (w *world) three() (a, b, c *process) {
	w.Helper()
	a, b, c = w.start("a", "1"), w.start("b", "1"), w.start("c", "1")
	time.Sleep(time.Minute)
	w.covered(a, b, c)
	return a, b, c
}

// four starts processes and waits until they share the slots, for a while.
func (w *world) four(change ...func(*process)) (all []*process) {
	w.Helper()
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, w.start(name, "1", change...))
	}
	time.Sleep(time.Minute)
	w.covered(all...)
	return all
}

// lease returns a stored Lease.
func (w *world) lease(name string) *coordinationv1.Lease {
	w.Helper()
	return leasetest.Get(w.T, w.server, name)
}

// write changes a Lease without the members.
func (w *world) write(name string, change func(*coordinationv1.Lease)) {
	w.Helper()
	l := w.lease(name).DeepCopy()
	change(l)
	if _, err := w.server.Update(w.Context(), l); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.Helper()
	if _, err := w.server.Delete(w.Context(), leaseResource, "ops", name); err != nil {
		w.Fatal(err)
	}
}

// stored returns the map that the server has.
func (w *world) stored() handover.Map {
	w.Helper()
	m, err := handover.Decode(w.lease("rollout").Annotations[entriesAnnotation])
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// edit writes a changed map.
func (w *world) edit(change func(*handover.Map)) {
	w.Helper()
	m := w.stored()
	change(&m)
	text, err := m.Encode()
	if err != nil {
		w.Fatal(err)
	}
	w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = text })
}

// give writes an owner of a slot into the map, as if the present one had given it away.
func (w *world) give(n int, owner handover.ID) {
	w.Helper()
	w.edit(func(m *handover.Map) { m.Entries[n].Owner, m.Entries[n].Epoch = owner, m.Entries[n].Epoch+1 })
}

// mapWrites returns the number of writes of the map since the requests were last forgotten, and
// leaseWrites that of all Leases.
func (w *world) mapWrites() (n int) {
	for _, r := range w.server.Requests().Of(by("", "update")) {
		if r.Name == "rollout" {
			n++
		}
	}
	return n
}

func (w *world) leaseWrites() int {
	return len(w.server.Requests().Of(by("", "update"))) + len(w.server.Requests().Of(by("", "create")))
}
