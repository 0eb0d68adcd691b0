package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// read reads the group of a world as an operator does.
func (w *world) read() Report {
	w.Helper()
	config := w.server.Config()
	config.UserAgent = "eyes"
	r, err := Read(w.Context(), config, "ops", "rollout")
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// wantProblems checks that the problems of a report contain these texts, in this order.
func (w *world) wantProblems(r Report, parts ...string) {
	w.Helper()
	isAsWanted := len(r.Problems) == len(parts)
	for i, part := range parts {
		isAsWanted = isAsWanted && strings.Contains(r.Problems[i], part)
	}
	if !isAsWanted {
		w.Errorf("the problems are %q, want %q", r.Problems, parts)
	}
}

func TestS5_AGroupInOrderIsReadAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		began := time.Now()
		r := w.read()
		w.wantProblems(r)
		w.wantBetween("the reading", time.Since(began), 0, time.Second)
		if r.Lease != "ops/rollout" || len(r.Members) != 2 || len(r.Slots) != Count || r.Covered != 1 ||
			r.Planner != a.Health().Identity || r.Members[1].Slots != b.serves() {
			t.Errorf("%s has %d slots, the members are %+v", r.Lease, len(r.Slots), r.Members)
		}
		for i, m := range r.Members {
			w.wantBetween("the age", m.Age, time.Microsecond, duration/2)
			if !m.Live {
				t.Errorf("the member is %+v", m)
			}
			if owns := slices.ContainsFunc(r.Slots, func(e Entry) bool { return e.Owner == m.Identity }); !owns {
				t.Errorf("member %d owns nothing", i)
			}
		}
		if n := len(w.server.Requests().Of(by("eyes", ""))); n != 1 {
			t.Errorf("%d requests, want a list", n)
		}
	})
}

// TestS4_ARollingUpdateIsNoProblemUntilItStops has members of two generations. Each new member
// shows that the update goes on.
func TestS4_ARollingUpdateIsNoProblemUntilItStops(t *testing.T) {
	bubble(t, func(w *world) {
		w.covered(w.start("a", "1"))
		w.wantRemarks(w.read(), "")
		w.start("b", "2")
		time.Sleep(stalled - time.Second)
		w.wantRemarks(w.read(), `Members of 2 generations live, the newest member for 9m59s, and what `+
			`members leave goes to other generations than theirs: "1" has rollout.a-`)
		w.start("c", "2")
		time.Sleep(stalled - time.Second)
		w.wantRemarks(w.read(), "the newest member for 9m59s")
		time.Sleep(2 * time.Second)
		r := w.read()
		w.wantProblems(r, "Members of 2 generations live, the newest member for 10m1s")
		if len(r.Remarks) > 0 {
			t.Errorf("there are the remarks %q too", r.Remarks)
		}
	})
}

// wantRemarks checks that there are no problems, and a remark with a text; for "", no remark.
func (w *world) wantRemarks(r Report, part string) {
	w.Helper()
	w.wantProblems(r)
	if text := strings.Join(r.Remarks, "\n"); !strings.Contains(text, part) || (text == "") != (part == "") {
		w.Errorf("the remarks are %q, want %q", r.Remarks, part)
	}
}

// TestS5_ClocksThatDifferAreNotBelieved has a member whose renewTime is an hour ahead of the
// reader's clock, and another one whose renewTime is an hour behind it.
func TestS5_ClocksThatDifferAreNotBelieved(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		shift := func(p *process, by time.Duration) {
			w.write(p.Health().Identity, func(l *coordinationv1.Lease) {
				l.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(by)))
			})
		}
		shift(a, time.Hour)
		shift(b, -time.Hour)
		began := time.Now()
		w.wantProblems(w.read())
		w.wantBetween("the reading", time.Since(began), duration/2, duration/2+time.Second)
	})
}

func TestS5_ACrashIsReadAsOne(t *testing.T) {
	bubble(t, func(w *world) {
		w.two()
		for _, name := range []string{"a", "b"} {
			w.server.Inject(by(name, ""), apisim.Drop())
		}
		time.Sleep(3 * time.Minute)
		r := w.read()
		w.wantProblems(r, "No member lives.", "The Lease of rollout.a-", "The Lease of rollout.b-",
			" slots (", " slots (")
		if want := "ran out 2m"; !strings.Contains(r.Problems[1], want) {
			t.Errorf("%q has no %q", r.Problems[1], want)
		}
		if want := " have nobody for 2m"; !strings.Contains(r.Problems[3], want) {
			t.Errorf("%q has no %q", r.Problems[3], want)
		}
		if r.Covered != 0 || r.Planner != "" || r.Members[0].Live || r.Members[0].Slots == 0 {
			t.Errorf("%v are covered, the members are %+v", r.Covered, r.Members)
		}
	})
}

func TestS5_ProblemsOfAReading(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		b := w.start("b", "2", neverWarm)
		time.Sleep(10 * time.Second)
		w.wantProblems(w.read())
		b.leave()
		a.set(func(p *process) {
			p.unready, p.work.Lacks = true, []string{"counter"}
			p.work.Reasons = map[string]Set{"pods cannot be listed": allSlots}
		})
		time.Sleep(6 * time.Second)
		w.wantProblems(w.read(), "The member "+a.Health().Identity+" cannot serve counter.",
			"256 slots (0-255) are not ready at "+a.Health().Identity+": pods cannot be listed.")
		a.set(recovers)
		a.set(func(p *process) { p.work.Late = allSlots })
		time.Sleep(6 * time.Second)
		w.wantProblems(w.read(), "256 slots (0-255) are late at "+a.Health().Identity)
		a.set(recovers)
		time.Sleep(6 * time.Second)
		identity := a.Health().Identity
		w.server.Inject(by("a", ""), apisim.Refuse(500, 0))
		text := w.lease("rollout").Annotations[entriesAnnotation]
		w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = "1 {" })
		w.wantProblems(w.read(), "The map of the group cannot be read: ")
		w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = text })
		w.write(identity, func(l *coordinationv1.Lease) { lease.Release(l) })
		time.Sleep(5 * time.Second)
		w.wantProblems(w.read(), "No member lives.", "256 slots (0-255) have nobody for 5s: the owner rollout.a-")
		w.remove(identity)
		w.wantProblems(w.read(), "No member lives.", "256 slots (0-255) have nobody: the Lease of the owner ")
		w.remove("rollout")
		if _, err := Read(w.Context(), w.server.Config(), "ops", "other"); !errors.Is(err, ErrNoGroup) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestS5_AMapWithoutRoomForAControllerIsAProblem has a member that can lead more than 64
// controllers.
func TestS5_AMapWithoutRoomForAControllerIsAProblem(t *testing.T) {
	bubble(t, func(w *world) {
		const member = "rollout.x-1"
		var names []string
		for i := range slot.MaxControllers + 2 {
			names = append(names, fmt.Sprintf("c%02d", i))
		}
		m := handover.Map{Entries: make([]handover.Entry, slot.Entries), Controllers: names[:slot.MaxControllers]}
		weights := map[int]uint32{}
		for i := range m.Entries {
			m.Entries[i].Owner, weights[i] = member, 1
		}
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		create := func(l *coordinationv1.Lease) *coordinationv1.Lease {
			l.Namespace, l.Labels = "ops", map[string]string{groupLabel: "rollout"}
			created, err := w.server.Create(w.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			return created.(*coordinationv1.Lease)
		}
		table := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: "rollout", Annotations: map[string]string{entriesAnnotation: text},
		}}
		lease.Take(table, holderOfMap("rollout"), 3600)
		written := create(table)
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: member}}
		lease.Take(l, member, 15)
		w.record(l, handover.Record{
			Name: member, Generation: "1", Map: string(written.UID), State: handover.Takes,
			Weights: weights, Controllers: names,
		})
		create(l)
		w.wantProblems(w.read(), "The map is full, so that nobody leads c64, c65. Divide the controllers")
	})
}

func TestS5_AMapThatIsMissingOrFullOfHolesIsRead(t *testing.T) {
	bubble(t, func(w *world) {
		member := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: "rollout.x-1", Labels: map[string]string{groupLabel: "rollout"},
		}}
		lease.Take(member, member.Name, 15)
		weights := map[int]uint32{}
		for i := 192; i < Count; i++ {
			weights[i] = 17
		}
		w.record(member, handover.Record{
			Name: member.Name, Generation: "1", State: handover.Takes, Weights: weights,
		})
		if _, err := w.server.Create(w.Context(), member); err != nil {
			t.Fatal(err)
		}
		w.wantProblems(w.read(), "There is no map, so that no slot has an owner.")
		m := handover.Map{Entries: make([]handover.Entry, Count)}
		for i := 192; i < Count; i++ {
			m.Entries[i] = handover.Entry{Owner: "rollout.x-1", Epoch: 1, Left: handover.Reached}
		}
		m.Entries[254].Next, m.Entries[255].Next = "rollout.x-1", "rollout.x-1"
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		written := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: "rollout", Labels: map[string]string{groupLabel: "rollout"},
			Annotations: map[string]string{entriesAnnotation: text},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "rollout", Operation: "Update", APIVersion: "coordination.k8s.io/v1",
				Time: new(metav1.NewTime(time.Now().Add(-20 * time.Minute))), FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
			}},
		}}
		lease.Take(written, holderOfMap("rollout"), 3600)
		if _, err := w.server.Create(w.Context(), written); err != nil {
			t.Fatal(err)
		}
		r := w.read()
		w.wantProblems(r, "192 slots (0-191) have nobody: there is no owner.",
			"2 slots (254-255) move to another member for 20m0s or longer.")
		if r.Covered != 0.25 || r.Moving != 2 || r.Slots[255].MovingFor != 0 || r.Slots[255].Age != 0 {
			t.Errorf("%v are covered, %d move, the last one is %+v", r.Covered, r.Moving, r.Slots[255])
		}
	})
}

func TestSlotsText(t *testing.T) {
	var even Set
	for i := 0; i < Count; i += 2 {
		even.Add(i)
	}
	for want, slots := range map[string]Set{
		"Slot 7 moves":           slot.Of(7),
		"2 slots (7,9) move":     slot.Of(7, 9),
		"256 slots (0-255) move": slot.All(),
		"128 slots (0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,…) move": even,
	} {
		if got := texts(handover.Map{}, slots, "moves", "move")[0]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReadHasTheTimeoutOfTheConfig(t *testing.T) {
	bubble(t, func(w *world) {
		w.covered(w.start("a", "1"))
		config := w.server.Config()
		config.UserAgent = "eyes"
		w.server.Inject(by("eyes", "list"), apisim.Delay(10*time.Second))
		for timeout, took := range map[time.Duration]time.Duration{0: 3 * time.Second, time.Second: time.Second} {
			config.Timeout = timeout
			began := time.Now()
			// The server ends the request at the same time as the client.
			_, err := Read(w.Context(), config, "ops", "rollout")
			if !errors.Is(err, context.DeadlineExceeded) && !apierrors.IsTimeout(err) {
				t.Errorf("with %v the error is %v", timeout, err)
			}
			w.wantBetween("the reading", time.Since(began), took, took)
		}
		config.Timeout = time.Minute
		if _, err := Read(w.Context(), config, "ops", "rollout"); err != nil {
			t.Error(err)
		}
	})
}

func TestReadRefuses(t *testing.T) {
	bubble(t, func(w *world) {
		if _, err := Read(w.Context(), nil, "ops", "rollout"); err == nil {
			t.Error("a nil rest.Config is no error")
		}
		_, err := Read(w.Context(), w.server.Config(), "ops", "a/b")
		if err == nil || !strings.Contains(err.Error(), "Options.Name") {
			t.Errorf("the error of a wrong name is %v", err)
		}
		config := w.server.Config()
		config.UserAgent = "eyes"
		a := w.start("a", "1")
		w.covered(a)
		w.server.Inject(by("a", ""), apisim.Drop())
		time.Sleep(15 * time.Second)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if _, err := Read(ctx, config, "ops", "rollout"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error after the end of ctx is %v", err)
		}
		w.server.Inject(by("eyes", ""), apisim.Refuse(403, 0))
		_, err = Read(w.Context(), config, "ops", "rollout")
		if want := "grant the verb list on leases"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	})
}

// record writes a record into a Lease.
func (w *world) record(l *coordinationv1.Lease, r handover.Record) {
	w.Helper()
	if err := writeRecord(l, r); err != nil {
		w.Fatal(err)
	}
}
