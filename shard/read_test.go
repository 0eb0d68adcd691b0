package shard

import (
	"context"
	"encoding/json"
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
	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
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

// two starts processes and waits until both own slots.
func (w *world) two() (a, b *process) {
	w.Helper()
	a = w.start("a", "1")
	w.covered(a)
	b = w.start("b", "1")
	time.Sleep(30 * time.Second)
	w.covered(a, b)
	return a, b
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

// write changes a Lease without the members.
func (w *world) write(name string, change func(*coordinationv1.Lease)) {
	w.Helper()
	l := w.lease(name).DeepCopy()
	change(l)
	if _, err := w.server.Update(w.Context(), l); err != nil {
		w.Fatal(err)
	}
}

func TestS5_EntriesHaveLoadsAndAges(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.loads[7] = 2.5 })
		w.covered(a)
		time.Sleep(3 * time.Minute)
		w.start("b", "1", func(p *process) { p.neverWarm = true })
		time.Sleep(10 * time.Second)
		moving := 0
		for _, e := range a.Map() {
			w.wantBetween("the age", e.Age, 3*time.Minute, 3*time.Minute+12*time.Second)
			if e.Load != 0 && (e.Slot != 7 || e.Load != 2.5) || e.UncoveredFor != 0 || !e.Covered {
				t.Errorf("the entry is %+v", e)
			}
			if e.Next != "" {
				moving++
				w.wantBetween("the hand-over", e.MovingFor, 5*time.Second, 10*time.Second)
			}
		}
		h := a.Health()
		if moving < 2 || h.Moving != moving || h.Tolerated != 45*time.Second {
			t.Errorf("%d slots move: %+v", moving, h)
		}
		w.wantBetween("the longest hand-over", h.MovingFor, 5*time.Second, 10*time.Second)
		text, err := json.Marshal(h)
		if err != nil || !strings.Contains(string(text), `"load":2.5`) {
			t.Errorf("in JSON: %s, %v", text, err)
		}
	})
}

// TestS5_AProcessThatIsNoMemberSeesUncoveredSlots: its loop does not run, but its health and its log
// show them.
func TestS5_AProcessThatIsNoMemberSeesUncoveredSlots(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Inject(by("b", "create"), apisim.Refuse(403, 0))
		b := w.start("b", "1")
		time.Sleep(time.Second)
		if h := b.Health(); h.Covered != 0 || h.Uncovered != "0-255" {
			t.Errorf("without a map: %+v", h)
		}
		a := w.start("a", "1")
		w.covered(a)
		time.Sleep(6 * time.Second)
		if h := b.Health(); h.Covered != 1 || h.UncoveredFor != 0 || len(h.Members) != 1 || h.State != Joining {
			t.Errorf("with a member: %+v", h)
		}
		w.server.Inject(by("a", ""), apisim.Drop())
		time.Sleep(duration + time.Second)
		time.Sleep(time.Minute)
		h := b.Health()
		// The last renewal was sent up to a period before the first that was dropped.
		w.wantBetween("uncovered", h.UncoveredFor, time.Minute, time.Minute+2*time.Second+b.Group.times.Renew)
		if len(h.Members) != 1 || h.Members[0].Live || h.Members[0].Slots != Count {
			t.Errorf("the members are %+v", h.Members)
		}
		for _, e := range b.Map() {
			if e.Covered || e.UncoveredFor != h.UncoveredFor {
				t.Fatalf("the entry is %+v", e)
			}
		}
	})
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

// TestS4_ARollingUpdateIsNoProblemUntilItStops has members of two generations. Each new member shows
// that the update goes on.
func TestS4_ARollingUpdateIsNoProblemUntilItStops(t *testing.T) {
	bubble(t, func(w *world) {
		w.covered(w.start("a", "1"))
		w.wantRemarks(w.read(), "")
		w.start("b", "2")
		time.Sleep(stalled - time.Second)
		w.wantRemarks(w.read(), `Members of 2 generations live, the newest one for 9m59s, and slots move to its `+
			`generation, if that can serve them: "1" has rollout.a-`)
		w.start("c", "2")
		time.Sleep(stalled - time.Second)
		w.wantRemarks(w.read(), "the newest one for 9m59s")
		time.Sleep(2 * time.Second)
		r := w.read()
		w.wantProblems(r, "Members of 2 generations live, the newest one for 10m1s")
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
		if want := " are uncovered for 2m"; !strings.Contains(r.Problems[3], want) {
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
		b := w.start("b", "2", func(p *process) { p.neverWarm = true })
		time.Sleep(10 * time.Second)
		w.wantProblems(w.read())
		b.leave()
		a.mu.Lock()
		a.warm = Set{}
		a.mu.Unlock()
		time.Sleep(6 * time.Second)
		w.wantProblems(w.read(), "256 slots (0-255) are uncovered: the owner "+a.Health().Identity+
			" reports that not in order.")
		a.mu.Lock()
		a.warm = allSlots()
		a.mu.Unlock()
		identity := a.Health().Identity
		w.server.Inject(by("a", ""), apisim.Refuse(500, 0))
		text := w.lease("rollout").Annotations[entriesAnnotation]
		w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = "{" })
		w.wantProblems(w.read(), "The map of the group, lease ops/rollout, cannot be read: unexpected end of "+
			"JSON input. No member acts on it.")
		w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = text })
		w.write(identity, func(l *coordinationv1.Lease) { lease.Release(l) })
		time.Sleep(5 * time.Second)
		w.wantProblems(w.read(), "No member lives.", "256 slots (0-255) are uncovered for 5s: the owner rollout.a-")
		w.remove(identity)
		w.wantProblems(w.read(), "No member lives.", "256 slots (0-255) are uncovered: the Lease of the owner ")
		w.remove("rollout")
		w.wantProblems(w.read(), "No member lives.", "There is no map")
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
		c := contents{make([]protocol.Entry, slot.Entries), names[:slot.MaxControllers]}
		for i := range c.entries {
			c.entries[i].Owner = member
		}
		text, err := encode(c)
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
		written := create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: "rollout", Annotations: map[string]string{entriesAnnotation: text},
		}})
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: member}}
		lease.Take(l, member, 15)
		all := slot.All().Union(Set{4: ^uint64(0)})
		record{generation: "1", mapUID: string(written.UID), serving: all, controllers: names}.write(l)
		create(l)
		w.wantProblems(w.read(), "The map is full, so that nobody leads c64, c65. Divide the controllers")
	})
}

func (w *world) remove(name string) {
	w.Helper()
	if _, err := w.server.Delete(w.Context(), leaseResource, "ops", name); err != nil {
		w.Fatal(err)
	}
}

func TestS5_AMapThatIsMissingOrFullOfHolesIsRead(t *testing.T) {
	bubble(t, func(w *world) {
		member := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: "rollout.x-1", Labels: map[string]string{groupLabel: "rollout"},
		}}
		lease.Take(member, member.Name, 15)
		record{generation: "1", serving: Set{3: ^uint64(0)}}.write(member)
		if _, err := w.server.Create(w.Context(), member); err != nil {
			t.Fatal(err)
		}
		w.wantProblems(w.read(), "There is no map, so that no slot has an owner.")
		entries := decoded(t, `{"members":["rollout.x-1"],"entries":[`+
			strings.Repeat(`[],`, 192)+strings.Repeat(`[1,1],`, 62)+`[1,1,1],[1,1,1]]}`)
		written := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: "rollout", Labels: map[string]string{groupLabel: "rollout"},
			Annotations: map[string]string{entriesAnnotation: entries},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "rollout", Operation: "Update", APIVersion: "coordination.k8s.io/v1",
				Time: new(metav1.NewTime(time.Now().Add(-2 * time.Minute))), FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
			}},
		}}
		if _, err := w.server.Create(w.Context(), written); err != nil {
			t.Fatal(err)
		}
		r := w.read()
		w.wantProblems(r, "192 slots (0-191) are uncovered: there is no owner.",
			"2 slots (254-255) move to another member for 2m0s or longer.")
		if r.Covered != 0.25 || r.Moving != 2 || r.Slots[255].MovingFor != 0 || r.Slots[255].Age != 0 {
			t.Errorf("%v are covered, %d move, the last one is %+v", r.Covered, r.Moving, r.Slots[255])
		}
	})
}

// decoded returns the text of a map. It fails the test if the text cannot be read.
func decoded(t *testing.T, text string) string {
	t.Helper()
	l := new(coordinationv1.Lease)
	l.Annotations = map[string]string{entriesAnnotation: text}
	if _, err := decode(l); err != nil {
		t.Fatal(err)
	}
	return text
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
		if got := (contents{}).texts(slots, "moves", "move")[0]; got != want {
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
		if _, err := Read(w.Context(), w.server.Config(), "ops", "a/b"); err == nil || !strings.Contains(err.Error(), "Options.Name") {
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
		_, err := Read(w.Context(), config, "ops", "rollout")
		if want := "grant the verb list on leases"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	})
}
