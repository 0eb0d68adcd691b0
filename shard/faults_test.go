package shard

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/lease/leasetest"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

func TestS1_ABrokenMapThatIsDeletedIsMadeAnew(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = "{" })
		time.Sleep(time.Second)
		if h := a.Health(); h.Map == nil || a.serves()+b.serves() != Count {
			t.Fatalf("%d and %d slots are served: %+v", a.serves(), b.serves(), h)
		}
		w.remove("rollout")
		w.restored = true
		w.wantBetween("the new map", w.covered(a, b), 0, duration)
		if h := a.Health(); h.Map != nil {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS1_AMemberThatSeesNoMapPlansNothing has a member with the lowest identity that may write Leases,
// but not list or watch them.
func TestS1_AMemberThatSeesNoMapPlansNothing(t *testing.T) {
	bubble(t, func(w *world) {
		for _, verb := range []string{"list", "watch"} {
			w.server.Inject(by("a", verb), apisim.Refuse(http.StatusForbidden, 0))
		}
		w.start("a", "1")
		time.Sleep(time.Second)
		b := w.start("b", "1")
		w.covered(b)
		c := w.start("c", "1")
		time.Sleep(5 * time.Minute)
		w.covered(b, c)
		if n := c.serves(); n < Count/3 {
			t.Errorf("c serves %d slots, and %q plans", n, b.Health().Planner)
		}
		w.wantProblems(w.read(), "The member rollout.a-")
	})
}

// TestS6_SlotsThatWereNotWarmInTimeAreDropped: the slots of a call of Warm are held no longer than the
// hand-over.
func TestS6_SlotsThatWereNotWarmInTimeAreDropped(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		b := w.start("b", "1", func(p *process) { p.neverWarm = true })
		time.Sleep(50 * time.Second)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := b.dropped.Len(); n != Count/4 || a.Health().Moves.TakenBack != Count/4 {
			t.Errorf("%d slots are dropped", n)
		}
	})
}

// TestS1_AWatchThatIsSilentIsBegunAnew: a member that is alone notices another one.
func TestS1_AWatchThatIsSilentIsBegunAnew(t *testing.T) {
	bubble(t, func(w *world) {
		silence := w.server.Inject(by("a", "watch").Nth(1), apisim.Stall(1, 0))
		a := w.start("a", "1")
		w.covered(a)
		b := w.start("b", "1")
		time.Sleep(time.Minute)
		w.covered(a, b)
		if n := b.serves(); n != Count/4 {
			t.Errorf("b serves %d slots", n)
		}
		silence.Lift()
	})
}

// TestS2_AWatchThatFailsIsReplacedByLists: a member whose watches fail for long takes part.
func TestS2_AWatchThatFailsIsReplacedByLists(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		w.server.Inject(by("b", "watch"), apisim.Refuse(http.StatusInternalServerError, 0))
		b := w.start("b", "1")
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
		if n := b.serves(); n < Count/3 || a.Health().Moves.TakenBack != 0 {
			t.Errorf("b serves %d slots: %+v", n, a.Health())
		}
	})
}

// TestS3_APageOfAProxyIsNoEnd: an error page of a proxy does not mean that a Lease, or the map, is
// gone.
func TestS3_APageOfAProxyIsNoEnd(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden, http.StatusGone} {
		bubble(t, func(w *world) {
			a, b := w.two()
			fault := w.server.Inject(by("", ""), leasetest.Page(code))
			w.server.CutConnections()
			time.Sleep(5 * time.Second)
			fault.Lift()
			time.Sleep(10 * time.Second)
			w.covered(a, b)
			if len(a.terms) != 1 || len(b.terms) != 1 {
				t.Errorf("%d: there were %d and %d terms: %v", code, len(a.terms), len(b.terms), a.terms[0].Err())
			}
		})
	}
}

// TestS2_AMapWithoutItsLabelIsRepaired removes the label by which the Leases are watched.
func TestS2_AMapWithoutItsLabelIsRepaired(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		w.write("rollout", func(l *coordinationv1.Lease) { delete(l.Labels, groupLabel) })
		time.Sleep(time.Minute)
		w.covered(a, b)
		time.Sleep(5 * time.Minute)
		if n := min(a.serves(), b.serves()); n < Count/3 || w.lease("rollout").Labels[groupLabel] == "" {
			t.Errorf("a member serves %d slots", n)
		}
	})
}

// TestS1_ARestoredBackupHasOneOwner has a server that loses all changes since a member joined: the map
// is an older one, in which the other member owns all slots. The member reads it late.
func TestS1_ARestoredBackupHasOneOwner(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		backup := w.server.Snapshot()
		b := w.start("b", "1")
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
		for _, verb := range []string{"list", "get"} {
			w.server.Inject(by("b", verb), apisim.Delay(2*time.Second))
		}
		w.server.Rewind(backup)
		w.restored = true
		restored := time.Now()
		w.covered(a, b)
		w.wantBetween("the restart", time.Since(restored), 0, 3*duration)
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
		if n := min(a.serves(), b.serves()); n < Count/3 {
			t.Errorf("a member serves %d slots", n)
		}
	})
}

// TestS1_AMapWithFewerEntriesIsMadeAnew removes the controllers from the map.
func TestS1_AMapWithFewerEntriesIsMadeAnew(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a, b, c := f.three()
		f.write("rollout", func(l *coordinationv1.Lease) {
			read, err := decode(l)
			if err != nil {
				t.Fatal(err)
			}
			text, err := encode(contents{entries: read.entries[:Count]})
			if err != nil {
				t.Fatal(err)
			}
			l.Annotations[entriesAnnotation] = text
		})
		time.Sleep(time.Second)
		f.led(a, b, c)
	})
}

// TestS1_ADeletedMapWhileAControllerMoves deletes the map within a hand-over: the next map has no
// entry for the controller at first.
func TestS1_ADeletedMapWhileAControllerMoves(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.led(a)
		a.set(func(a *replica) { a.takes = 5 * time.Second })
		f.askAll(1)
		time.Sleep(time.Second)
		b := f.join("b", controller.ByNamespace)
		for a.Health().Moving == 0 {
			time.Sleep(50 * time.Millisecond)
		}
		f.remove("rollout")
		time.Sleep(time.Second)
		f.led(a, b)
		time.Sleep(2 * time.Minute)
		f.led(a, b)
	})
}

// TestS4_AnOlderMemberThatJoinsAnewIsNoNewerVersion has a member of the older generation that loses its
// Lease during an update.
func TestS4_AnOlderMemberThatJoinsAnewIsNoNewerVersion(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		c := w.start("c", "2")
		time.Sleep(5 * time.Second)
		w.remove(b.Health().Identity)
		time.Sleep(2 * duration)
		w.covered(a, b, c)
		a.leave()
		if w.covered(b, c); c.serves() != Count {
			t.Errorf("of the newer generation are the owners of %d slots", c.serves())
		}
	})
}

// TestS4_AControllerThatTheNewerVersionLacksIsLedByTheOlder, while a member of the older version
// lives.
func TestS4_AControllerThatTheNewerVersionLacksIsLedByTheOlder(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.led(a)
		b := f.join("b", controller.ByNamespace)
		time.Sleep(time.Minute)
		f.generation, f.singles = "2", managedControllers-1
		c := f.join("c", controller.ByNamespace)
		time.Sleep(time.Minute)
		last := a
		if slices.Contains(b.leads(), fmt.Sprint("k", managedControllers-1)) {
			a, b, last = b, a, b
		}
		last.stop()
		f.singles = managedControllers
		f.led(b, c)
		time.Sleep(6 * time.Second) // the next renewals report it
		if h := b.Health(); h.Covered != 1 || !slices.Contains(b.leads(), fmt.Sprint("k", managedControllers-1)) {
			t.Errorf("b leads %v: %+v", b.leads(), h)
		}
	})
}

// TestS5_AControllerWithoutAnEntryIsUncovered: the members can lead more than the map has room for.
func TestS5_AControllerWithoutAnEntryIsUncovered(t *testing.T) {
	bubble(t, func(w *world) {
		names := func(from, to int) func(*process) {
			return func(p *process) {
				for i := from; i < to; i++ {
					p.leads = append(p.leads, fmt.Sprintf("c%02d", i))
				}
			}
		}
		logged := &strings.Builder{}
		a := w.start("a", "1", names(0, 60), func(p *process) { p.logger = slog.New(slog.NewTextHandler(logged, nil)) })
		w.covered(a)
		time.Sleep(5 * time.Second)
		if h := a.Health(); h.Covered != 1 || h.Uncovered != "" {
			t.Errorf("the health is %+v", h)
		}
		b := w.start("b", "1", names(2, 66))
		time.Sleep(time.Minute)
		for _, p := range []*process{a, b} {
			if h := p.Health(); h.Covered != 320./322 || h.Uncovered != "c64,c65" || h.UncoveredFor < 50*time.Second {
				t.Errorf("the health is %+v", h)
			}
		}
		synctest.Wait()
		if !strings.Contains(logged.String(), `slots=c64,c65 for=45.`) {
			t.Errorf("logged is\n%s", logged)
		}
		w.wantProblems(w.read(), "nobody leads c64, c65.")
	})
}

// TestS1_ALargeMapIsStored has a controller that writes many resources, and slots that have moved at
// different times.
func TestS1_ALargeMapIsStored(t *testing.T) {
	c := contents{entries: make([]protocol.Entry, Count)}
	for i := range c.entries {
		e := protocol.Entry{Owner: "rollout.a-x", Epoch: 3, Versions: map[string]string{}}
		for r := range 60 {
			e.Versions[fmt.Sprintf("resource-%03d.example.com", r)] = fmt.Sprint(1_000_000 + i)
		}
		c.entries[i] = e
	}
	c.entries[7].Versions = nil // the versions are not known
	text, err := encode(c)
	if err != nil || len(text) > 256<<10 {
		t.Fatalf("the map has %d bytes, %v", len(text), err)
	}
	got, err := decode(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{entriesAnnotation: text},
	}})
	if err != nil || got.entries[7].Versions != nil ||
		got.entries[0].Versions["resource-003.example.com"] != "1000255" {
		t.Errorf("the versions are %v, %v", got.entries[0].Versions, err)
	}
}

// TestS3_AControllerThatNobodyHereKnowsIsNotLed makes a member the owner of an unknown
// controller.
func TestS3_AControllerThatNobodyHereKnowsIsNotLed(t *testing.T) {
	inManagedFleet(t, func(f *fleet) {
		a := f.join("a", controller.ByNamespace)
		f.led(a)
		f.write("rollout", func(l *coordinationv1.Lease) {
			c, err := decode(l)
			if err != nil {
				t.Fatal(err)
			}
			c.controllers = append(c.controllers, "stranger")
			c.entries = append(c.entries, protocol.Entry{Owner: c.entries[0].Owner, Epoch: 1})
			if l.Annotations[entriesAnnotation], err = encode(c); err != nil {
				t.Fatal(err)
			}
		})
		time.Sleep(10 * time.Second)
		f.led(a)
		if h := a.Health(); h.Uncovered != "stranger" {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS1_ALoadThatIsNoSumMovesNothing has members that report loads whose sum is infinite.
func TestS1_ALoadThatIsNoSumMovesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		loaded := func(p *process) {
			for n := range p.loads {
				p.loads[n] = 1.7e308
			}
		}
		a := w.start("a", "1", loaded)
		w.covered(a)
		b := w.start("b", "1", loaded)
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
		settled := time.Now()
		time.Sleep(10 * time.Minute)
		if moves := w.moved(settled); slices.Max(moves[:]) > 0 || min(a.serves(), b.serves()) < Count/3 {
			t.Errorf("a serves %d slots; the slots moved %v times", a.serves(), moves)
		}
	})
}
