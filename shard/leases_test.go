package shard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// TestS1_AMemberWhoseLeaseIsUnseenAndDeleted has a Lease that no watch shows, as one without the
// label of the group, and that somebody deletes when its member has been waited for. The member may
// have renewed it until then, so that it is waited for once more.
func TestS1_AMemberWhoseLeaseIsUnseenAndDeleted(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		time.Sleep(time.Second)
		unseen := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "rollout.unseen"}}
		if _, err := apisim.Create(w.Context(), w.server, unseen); err != nil {
			t.Fatal(err)
		}
		w.give(7, "rollout.unseen")
		time.Sleep(duration - 100*time.Millisecond)
		w.remove("rollout.unseen")
		deleted := time.Now()
		for a.Map()[7].Owner == "rollout.unseen" && time.Since(deleted) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		w.wantBetween("the end of the member", time.Since(deleted), duration, takeOverBound)
	})
}

// TestS1_ARestoredBackupShowsInTheAnswerToARenewal restores a backup with the same map, while a
// member sees nothing but the answers to its writes: their versions are older ones.
func TestS1_ARestoredBackupShowsInTheAnswerToARenewal(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		time.Sleep(2 * duration)
		backup := w.server.Snapshot()
		time.Sleep(2 * duration)
		for _, verb := range []string{"list", "watch"} {
			w.server.Inject(by("a", verb), apisim.Drop())
		}
		w.restored = true
		w.server.Rewind(backup)
		restored := time.Now()
		for a.terms[0].Err() == nil && time.Since(restored) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if err := a.terms[0].Err(); !errors.Is(err, errRestored) {
			t.Errorf("the term ended with %v", err)
		}
		w.wantBetween("the end of the membership", time.Since(restored), 0, duration/3+time.Second)
	})
}

// TestS2_ALeaseThatCannotBeEndedHoldsUpNoOther refuses writes to the Lease of a member that has
// crashed, as an admission policy may do. Another member leaves, and its slots are handed over.
func TestS2_ALeaseThatCannotBeEndedHoldsUpNoOther(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		refused := by("", "update")
		refused.Name = c.Health().Identity
		w.server.Inject(by("c", ""), apisim.Drop())
		w.server.Inject(refused, apisim.Refuse(http.StatusForbidden, 0))
		time.Sleep(time.Minute)
		before, sent := b.serves()+a.serves(), len(w.server.Requests().Of(refused))
		a.leave()
		time.Sleep(time.Minute)
		if b.serves() != before {
			t.Errorf("b serves %d slots a minute after a has left, want %d", b.serves(), before)
		}
		if n := len(w.server.Requests().Of(refused)) - sent; n > 30 {
			t.Errorf("%d writes were refused in a minute", n)
		}
	})
}

// TestS2_AMapWithAnIdentityThatIsNoName has members in the map that can have no Lease, as by a slip
// of the hand. They are no members.
func TestS2_AMapWithAnIdentityThatIsNoName(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		w.edit(func(m *handover.Map) { m.Entries[7].Next, m.Entries[8].Next = "ops/rollout.a", "%" })
		time.Sleep(2 * time.Minute)
		b := w.start("b", "1")
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
		if b.serves() < Count/4 {
			t.Errorf("b serves %d slots", b.serves())
		}
	})
}

// TestS5_TheLogSaysThatNobodyIsAMember forbids all that members need.
func TestS5_TheLogSaysThatNobodyIsAMember(t *testing.T) {
	bubble(t, func(w *world) {
		logged := &strings.Builder{}
		a := w.start("a", "1", with(func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(logged, nil)) }))
		w.covered(a)
		for _, verb := range []string{"create", "update", "list"} {
			w.server.Inject(by("", verb), apisim.Refuse(http.StatusForbidden, 0))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if a.serves() != 0 || !strings.Contains(logged.String(), "slots or controllers are owned by nobody") {
			t.Errorf("%d slots are served, and the log is\n%s", a.serves(), logged)
		}
		if h := a.Health(); h.UncoveredFor < 4*time.Minute {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS7_ALeaseWithAFinalizerIsDeletedOnce: it stays in the view after the server has answered.
func TestS7_ALeaseWithAFinalizerIsDeletedOnce(t *testing.T) {
	bubble(t, func(w *world) {
		_, b, _ := w.three()
		id := b.Health().Identity
		w.write(id, func(l *coordinationv1.Lease) { l.Finalizers = []string{"example.com/keep"} })
		w.server.Inject(by("", "delete"), apisim.Delay(10*time.Millisecond)) // so that time passes
		b.leave()
		time.Sleep(time.Minute)
		if n := len(w.server.Requests().Of(by("", "delete"))); n != 1 {
			t.Errorf("it was deleted %d times", n)
		}
		w.write(id, func(l *coordinationv1.Lease) { l.Finalizers = nil })
	})
}

// TestS5_ALeaseThatConflictsHoldsUpNoOther: each update of the Lease of a dead member is refused.
func TestS5_ALeaseThatConflictsHoldsUpNoOther(t *testing.T) {
	for _, code := range []int{403, 500, 404, 409} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(w *world) {
				a, b, c := w.three()
				w.server.Inject(by("c", ""), apisim.Drop())
				dead := by("", "update")
				dead.Name = c.Health().Identity
				w.server.Inject(dead, apisim.Refuse(code, 0))
				time.Sleep(duration + 10*time.Second)
				served := a.serves() + b.serves()
				w.server.ForgetRequests()
				time.Sleep(time.Minute)
				if n := len(w.server.Requests().Of(by("a", ""))); n > 90 {
					t.Errorf("%d requests of a in a minute", n)
				}
				left := time.Now()
				b.leave()
				w.wantBetween("the leave", time.Since(left), 0, 2*time.Second)
				if time.Sleep(time.Minute); a.serves() != served {
					t.Errorf("a serves %d slots, want %d", a.serves(), served)
				}
			})
		})
	}
}

// TestS7_ALeaseThatCannotBeDeletedIsTriedRarely: the role lacks the verb delete.
func TestS7_ALeaseThatCannotBeDeletedIsTriedRarely(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		w.server.Inject(by("", "delete"), apisim.Refuse(403, 0))
		c.leave()
		time.Sleep(time.Minute)
		w.covered(a, b)
		w.server.ForgetRequests()
		time.Sleep(10 * time.Minute)
		deletes := len(w.server.Requests().Of(by("a", "delete")))
		if deletes == 0 || deletes > 130 {
			t.Errorf("a sent %d deletes in 10 minutes", deletes)
		}
	})
}

// TestS3_AMemberWithoutItsLabel: somebody removes the label of the Lease of b, which ends.
func TestS3_AMemberWithoutItsLabel(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		at := time.Now()
		w.write(b.Health().Identity, func(l *coordinationv1.Lease) { delete(l.Labels, groupLabel) })
		time.Sleep(2 * time.Minute)
		w.covered(a, b, c)
		w.wantBetween("the longest gap", w.longestGap(at), 0, takeOverBound)
	})
}

// TestS3_ACrashBesideMembersThatCannotJoin has members with lower identities that write Leases, and
// cannot list them.
func TestS3_ACrashBesideMembersThatCannotJoin(t *testing.T) {
	bubble(t, func(w *world) {
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			w.server.Inject(by(name, "list"), apisim.Refuse(403, 0))
			w.start(name, "1")
		}
		b := w.start("b", "1")
		w.covered(b)
		c := w.start("c", "1")
		time.Sleep(5 * time.Minute)
		w.covered(b, c)
		sent := len(w.server.Requests().Of(by("c", "update")))
		for len(w.server.Requests().Of(by("c", "update"))) == sent {
			time.Sleep(10 * time.Millisecond)
		}
		w.server.Inject(by("c", ""), apisim.Drop())
		w.wantBetween("the take-over", w.covered(b), duration*2/3, takeOverBound)
	})
}
