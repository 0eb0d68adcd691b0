package shard

import (
	"errors"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
	"github.com/tidings-go/tidings/internal/test/logtable"
)

// TestLogs makes groups log the lines of docs/logs.md, and no other.
func TestLogs(t *testing.T) {
	lines := logtable.New("lease")
	logged := with(func(o *Options) { o.Logger = lines.Logger() })
	bubble(t, func(w *world) { // a member that cannot warm, and then is away for a minute
		a := w.start("a", "1", logged)
		w.covered(a)
		b := w.start("b", "1", logged, neverWarm)
		time.Sleep(40 * time.Second)
		away := w.server.Inject(by("b", ""), apisim.Drop())
		time.Sleep(time.Minute)
		away.Lift()
		time.Sleep(time.Minute)
		b.leave()
		a.set(unready) // a reports no slots in order
		time.Sleep(2 * time.Minute)
		a.set(recovers)
		a.set(func(p *process) { p.work.Late = allSlots })
		time.Sleep(12 * time.Minute)
	})
	bubble(t, func(w *world) { // a member whose lists fail
		w.start("a", "1", logged, func(p *process) { p.warmErr = errForbidden })
		time.Sleep(30 * time.Second)
	})
	bubble(t, func(w *world) { // nobody, and a process that cannot join
		a := w.start("a", "1")
		w.covered(a)
		w.server.Inject(by("b", "create"), apisim.Refuse(http.StatusForbidden, 0))
		w.start("b", "1", logged)
		time.Sleep(time.Second)
		a.crash()
		time.Sleep(3 * time.Minute)
	})
	err := lines.Compare("../docs/logs.md", "Shards",
		"the membership is not released: others wait for its duration")
	if err != nil {
		t.Error(err)
	}
}

// TestTheRoleIsWhatAGroupNeeds runs members with the rights of the manifest.
func TestTheRoleIsWhatAGroupNeeds(t *testing.T) {
	data, err := os.ReadFile("testdata/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.Role
	if err := yaml.UnmarshalStrict(data, &role); err != nil {
		t.Fatal(err)
	}
	bubble(t, func(w *world) {
		rules, err := apisim.RulesOf(role.Namespace, role.Rules)
		if err != nil {
			t.Fatal(err)
		}
		err = w.server.SetUsers(apisim.User{Name: "a", Token: "a", Allow: rules},
			apisim.User{Name: "b", Token: "b", Allow: rules})
		if err != nil {
			t.Fatal(err)
		}
		a, b := w.start("a", "1"), w.start("b", "1")
		time.Sleep(time.Minute)
		w.covered(a, b)
		renewal := by("a", "update")
		renewal.Name = a.Health().Identity
		w.server.Inject(renewal.Nth(1), apisim.Call(func(*http.Request) { // a conflict, and then a get
			leasetest.Change(t, w.server, renewal.Name, func(l *lease.Lease) { l.Labels["of"] = "another" })
		}))
		dropped := w.server.Inject(by("b", ""), apisim.Delay(30*time.Second))
		w.covered(a)
		dropped.Lift()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := w.server.Requests().CheckRights(rules); err != nil {
			t.Error(err)
		}
		if h := a.Health(); errors.Join(h.Polling, h.LastError) != nil {
			t.Errorf("the health is %+v", h)
		}
	})
}
