package handover

import (
	"maps"
	"reflect"
	"testing"
	"time"
)

// pair are the two members of a hand-over, and what they see of each other.
type pair struct {
	*testing.T
	a, b    *Member
	peers   map[ID]Peer
	version uint64
}

func newPair(t *testing.T) *pair {
	peer := Peer{Standing: Live, State: Takes, Joined: true}
	p := &pair{t, &Member{Self: "a"}, &Member{Self: "b"}, map[ID]Peer{"a": peer, "b": peer}, 0}
	p.show([]Entry{{}})
	return p
}

func (p *pair) show(entries []Entry) {
	p.Helper()
	p.version++
	for _, m := range []*Member{p.a, p.b} {
		if lost, _ := m.See(p.version, entries); len(lost) > 0 {
			p.Errorf("%s loses %v", m.Self, lost)
		}
	}
}

// write makes a member write the map, "a" being the planner.
func (p *pair) write(m *Member, moves ...Move) {
	p.Helper()
	entries, changed := m.Next(View{Peers: p.peers, Planner: "a", Moves: moves, Tidy: true})
	if !changed {
		p.Fatalf("%s wants no change of %+v", m.Self, m.Entries())
	}
	p.show(entries)
}

func (p *pair) want(ofA, ofB Phase, acts ...any) {
	p.Helper()
	if p.a.Phase(0) != ofA || p.b.Phase(0) != ofB {
		p.Fatalf("the phases are %d and %d, want %d and %d", p.a.Phase(0), p.b.Phase(0), ofA, ofB)
	}
	var got []any
	for _, m := range []*Member{p.a, p.b} {
		for _, act := range m.Acts() {
			got = append(got, m.Self, act.Act)
		}
	}
	if !reflect.DeepEqual(got, acts) {
		p.Errorf("the handlers are to make %v, want %v", got, acts)
	}
}

// open makes a the owner of the entry, with calls.
func (p *pair) open() {
	p.Helper()
	p.want(Elsewhere, Elsewhere)
	p.write(p.a, Move{0, "a"})
	p.want(Filling, Elsewhere, ID("a"), Fill)
	p.a.Filled(0)
	p.want(Reaching, Elsewhere, ID("a"), Serve)
	p.a.Opened(0, 7)
	p.want(Reaching, Elsewhere) // it was another epoch
	p.a.Opened(0, 1)
	p.want(Open, Elsewhere)
	p.write(p.a) // it needs no versions
}

// ready makes b the next owner, which is ready.
func (p *pair) ready() {
	p.Helper()
	p.write(p.a, Move{0, "b"})
	p.want(Open, Warming, ID("b"), Fill)
	p.b.Filled(0)
	p.want(Open, Warm)
	p.write(p.b)
}

var dawn = time.Unix(1e9, 0)

func TestS2_AHandOver(t *testing.T) {
	p := newPair(t)
	p.open()
	p.ready()
	idle := Calls{Opened: true, Known: true, Versions: map[string]string{"pods": "17"}}
	p.a.Try(0, dawn, idle, false)
	p.want(Closed, Warm, ID("a"), Shut)
	p.a.Try(0, dawn, idle, false)
	p.want(Drained, Warm)
	if p.a.See(1, []Entry{{Owner: "a"}}); p.a.Phase(0) != Drained {
		t.Error("an older map ends the doubt")
	}
	p.write(p.a)
	p.want(Elsewhere, Reaching, ID("a"), Drop, ID("b"), Serve)
	e := p.b.Entries()[0]
	if e.Epoch != 2 || e.Left != Known || !maps.Equal(e.Versions, idle.Versions) {
		t.Errorf("the entry is %+v", e)
	}
	p.b.Opened(0, 2)
	p.write(p.b)
	if e := p.b.Entries()[0]; e.Left != Reached || e.Versions != nil {
		t.Errorf("the versions stay in %+v", e)
	}
}

// TestS2_AnOwnerThatHasNotOpened passes on the versions that it has got itself.
func TestS2_AnOwnerThatHasNotOpened(t *testing.T) {
	p := newPair(t)
	versions := map[string]string{"pods": "17"}
	p.show([]Entry{{Owner: "a", Epoch: 4, Next: "b", Ready: true, Left: Known, Versions: versions}})
	p.want(Filling, Warming, ID("a"), Fill, ID("b"), Fill)
	p.a.Try(0, dawn, Calls{}, false)
	p.want(Drained, Warming)
	p.write(p.a)
	if e := p.b.Entries()[0]; e.Owner != "b" || e.Left != Known || !maps.Equal(e.Versions, versions) {
		t.Errorf("the entry is %+v", e)
	}
}

// TestS2_ALongCall: a call of 15 minutes never closes the slot, and calls that overlap do not keep
// it.
func TestS2_ALongCall(t *testing.T) {
	p := newPair(t)
	p.open()
	p.ready()
	long := Calls{Opened: true, Running: 1, Oldest: dawn}
	tries, now := 0, dawn.Add(2*time.Second)
	for now.Before(dawn.Add(15 * time.Minute)) {
		wake := p.a.Try(0, now, long, false)
		if p.a.Phase(0) != Open || len(p.a.Acts()) > 0 {
			t.Fatalf("the slot is closed after %v", now.Sub(dawn))
		}
		if !wake.After(now) {
			t.Fatalf("it is tried again at %v", wake)
		}
		tries, now = tries+1, wake
	}
	if tries < 14 || tries > 20 {
		t.Errorf("%d tries in 15 minutes", tries)
	}
	// Calls of ten seconds, one after the other begins: T has risen, so that they can be waited
	// for.
	now = p.a.Try(0, now, Calls{Opened: true, Running: 1, Oldest: now.Add(-9 * time.Second)}, false)
	p.want(Closed, Warm, ID("a"), Shut)
	p.a.Try(0, now.Add(-time.Second), Calls{Opened: true, Known: true}, false)
	p.want(Drained, Warm)
}

// TestS2_ACloseThatLastsTooLong opens again after a second.
func TestS2_ACloseThatLastsTooLong(t *testing.T) {
	p := newPair(t)
	p.open()
	p.ready()
	var pauses []time.Duration
	now := dawn
	for range 6 {
		running := Calls{Opened: true, Running: 1, Oldest: now}
		closed := p.a.Try(0, now, running, false)
		p.want(Closed, Warm, ID("a"), Shut)
		if closed.Sub(now) != time.Second {
			t.Errorf("it is closed for %v", closed.Sub(now))
		}
		again := p.a.Try(0, closed, running, false)
		p.want(Open, Warm, ID("a"), Unshut)
		pauses, now = append(pauses, again.Sub(closed)/time.Second), again
	}
	if want := []time.Duration{5, 10, 20, 40, 60, 60}; !reflect.DeepEqual(pauses, want) {
		t.Errorf("the pauses are %v, want %v", pauses, want)
	}
}

// TestS2_WritesThatDoNotShow: a member that stays waits for them, one that leaves hands over.
func TestS2_WritesThatDoNotShow(t *testing.T) {
	for _, gives := range []bool{false, true} {
		p := newPair(t)
		p.open()
		p.ready()
		c := Calls{Opened: true}
		until := p.a.Try(0, dawn, c, gives)
		p.want(Closed, Warm, ID("a"), Shut)
		p.a.Try(0, dawn, c, gives)
		p.want(Closed, Warm)
		p.a.Try(0, until, c, gives)
		if want := map[bool]Phase{false: Open, true: Drained}[gives]; p.a.Phase(0) != want {
			t.Errorf("gives %v: the phase is %d, want %d", gives, p.a.Phase(0), want)
		}
	}
}

func TestS2_AnHeirThatIsNoneAnyMore(t *testing.T) {
	for name, heir := range map[string]Peer{
		"ended": {Standing: Ended}, "leaves": {Standing: Live, State: Leaving}, "gives": {Standing: Live, State: Gives},
		"declines": {Standing: Live, State: Declines}, "refused": {Standing: Live, State: Takes, Refused: true},
	} {
		p := newPair(t)
		p.open()
		p.ready()
		c := Calls{Opened: true, Running: 1, Oldest: dawn}
		p.a.Try(0, dawn, c, false)
		p.want(Closed, Warm, ID("a"), Shut)
		p.peers["b"] = heir
		p.write(p.a)
		p.want(Open, Elsewhere, ID("a"), Unshut, ID("b"), Drop)
		if e := p.a.Entries()[0]; e.Owner != "a" || e.Next != "" || e.Ready {
			t.Errorf("%s: the entry is %+v", name, e)
		}
	}
	p := newPair(t)
	p.open()
	p.ready()
	p.peers["b"] = Peer{Standing: Held, State: Takes}
	if _, changed := p.a.Next(View{Peers: p.peers}); changed {
		t.Error("an heir that is held is cleared: it may be live")
	}
}

// TestS3_TheDead: the next owner keeps what it warms, with versions that are not known.
func TestS3_TheDead(t *testing.T) {
	p := newPair(t)
	p.open()
	p.ready()
	p.peers["a"] = Peer{Standing: Ended}
	entries, _ := p.b.Next(View{Peers: p.peers, Moves: []Move{{0, "c"}}})
	if e := entries[0]; e.Owner != "b" || e.Left != Unknown || e.Next != "" || e.Epoch != 2 {
		t.Errorf("the entry is %+v", e)
	}
}

func TestS1_AMapOfABackup(t *testing.T) {
	p := newPair(t)
	p.open()
	if lost, _ := p.a.See(99, []Entry{{Owner: "b", Epoch: 9}}); len(lost) != 1 {
		t.Errorf("it loses %v", lost)
	}
}

// TestS2_TheEndOfAGrace closes what is left for good.
func TestS2_TheEndOfAGrace(t *testing.T) {
	p := newPair(t)
	p.open()
	p.a.Final = true
	p.a.Try(0, dawn, Calls{Opened: true, Running: 1, Oldest: dawn.Add(-time.Hour)}, true)
	p.want(Closed, Elsewhere, ID("a"), Shut)
	p.a.Try(0, dawn.Add(time.Minute), Calls{Opened: true, Running: 1}, true)
	p.want(Closed, Elsewhere)
}

func TestS1_ThePlannerHasTheOldestLease(t *testing.T) {
	at := func(s int, p Peer) Peer {
		p.Standing, p.Joined, p.Created = Live, true, dawn.Add(time.Duration(s)*time.Second)
		return p
	}
	peers := map[ID]Peer{
		"a": at(3, Peer{}), "b": at(2, Peer{State: Leaving}), "c": at(1, Peer{Refused: true}), "d": at(3, Peer{State: Gives}),
		"e": {Standing: Held, Created: dawn}, "f": {Standing: Live, Created: dawn},
	}
	for _, want := range []ID{"a", "d", "b", "c", ""} {
		if got := Planner(peers); got != want {
			t.Errorf("the planner is %q, want %q", got, want)
		}
		delete(peers, want)
	}
}
