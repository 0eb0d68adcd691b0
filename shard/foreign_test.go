package shard

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
)

// foreign creates the Lease of an election with the name of the group.
func (w *world) foreign(holder string) *coordinationv1.Lease {
	w.Helper()
	now, seconds := metav1.NewMicroTime(time.Now()), int32(15)
	l, err := apisim.Create(w.Context(), w.server, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "rollout"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	})
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// TestS2_TheLeaseOfAnElectionHasTheName of the group, as that of the controller's earlier version,
// which ran with an election. The group takes its place when nobody holds it, and says meanwhile
// for what it waits.
func TestS2_TheLeaseOfAnElectionHasTheName(t *testing.T) {
	for name, c := range map[string]struct {
		holder string
		renews int // seconds
		ends   func(l *coordinationv1.Lease)
		begins time.Duration
	}{
		"released": {"", 0, nil, 8 * time.Second},
		"held, and released": {
			"another", 40, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("") }, 45 * time.Second,
		},
		"held, and runs out": {"another", 40, nil, 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				l := w.foreign(c.holder)
				a := w.start("a", "1")
				change := func(f func(l *coordinationv1.Lease)) {
					f(l)
					var err error
					if l, err = apisim.Update(w.Context(), w.server, l); err != nil {
						w.Fatal(err)
					}
				}
				for range c.renews {
					change(func(l *coordinationv1.Lease) { l.Spec.RenewTime = new(metav1.NowMicro()) })
					time.Sleep(time.Second)
				}
				if h := a.Health(); c.renews > 0 && (a.serves() > 0 || !errors.Is(h.LastError, errForeign)) {
					t.Errorf("beside the election, %d slots are served; the last error is %v", a.serves(), h.LastError)
				}
				if c.ends != nil {
					change(c.ends)
				}
				time.Sleep(c.begins - time.Duration(c.renews)*time.Second)
				if a.serves() != 256 {
					t.Errorf("%d slots are served; health: %+v", a.serves(), a.Health().LastError)
				}
				w.covered(a)
			})
		})
	}
}

// TestReadWaitsForNoLeaseForLong: its duration is an hour, and its age is unlikely.
func TestReadWaitsForNoLeaseForLong(t *testing.T) {
	bubble(t, func(w *world) {
		w.covered(w.start("a", "1"))
		now, seconds, holder := metav1.NewMicroTime(time.Now().Add(2*time.Second)), int32(3600), "rollout.x-1"
		_, err := apisim.Create(w.Context(), w.server, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ops", Name: holder, Labels: map[string]string{groupLabel: "rollout"},
			},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		report, err := Read(w.Context(), leasetest.Config(w.server, "reader"), "ops", "rollout")
		if took := time.Since(began); err != nil || took != mostWait || len(report.Members) != 2 {
			t.Errorf("Read took %v: %+v, %v", took, report.Members, err)
		}
	})
}

// TestAReadOfAMissingLeaseKeepsTheVersion of the view, by which answers of a server that was set
// back are noticed.
func TestAReadOfAMissingLeaseKeepsTheVersion(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		version := func() string {
			a.Group.mu.Lock()
			defer a.Group.mu.Unlock()
			return a.view.Newest()
		}
		before := version()
		if err := a.read(w.Context(), "rollout.nobody-1"); err != nil {
			t.Fatal(err)
		}
		if after := version(); after != before {
			t.Errorf("it was %q, and is %q", before, after)
		}
	})
}

// TestS5_ReadTellsOfAnElectionOfTheName while members wait for it.
func TestS5_ReadTellsOfAnElectionOfTheName(t *testing.T) {
	bubble(t, func(w *world) {
		w.foreign("another")
		w.start("a", "1")
		time.Sleep(8 * time.Second)
		r, err := Read(w.Context(), leasetest.Config(w.server, "reader"), "ops", "rollout")
		if err != nil || !slices.ContainsFunc(r.Problems, func(p string) bool { return strings.Contains(p, "held by another") }) {
			t.Errorf("%v: %q", err, r.Problems)
		}
		time.Sleep(time.Minute) // the election's Lease runs out
	})
}
