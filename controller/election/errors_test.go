package election

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings/apisim"
)

func TestOptionsThatCannotBeUsedAreErrors(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"Namespace is empty":                func(o *Options) { o.Namespace = "" },
		`Namespace "a/b": `:                 func(o *Options) { o.Namespace = "a/b" },
		"Name is empty":                     func(o *Options) { o.Name = "" },
		`Name "My Lease": `:                 func(o *Options) { o.Name = "My Lease" },
		"Duration is 500ms: give a second":  func(o *Options) { o.Duration = 500 * time.Millisecond },
		"Duration is -5s":                   func(o *Options) { o.Duration = -5 * time.Second },
		"Renew is 7s: give at most two":     func(o *Options) { o.Renew = 7 * time.Second },
		"Grace is -1s: give a positive":     func(o *Options) { o.Grace = -time.Second },
		"Duration is 2400000h0m0s: give a ": func(o *Options) { o.Duration = 2_400_000 * time.Hour },
	} {
		o := options("a")
		change(&o)
		if _, err := New(&rest.Config{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(&rest.Config{}, Options{Namespace: "ops", Name: "rollout"})
	if err != nil || e.o.Identity != host || e.o.Duration != duration || e.o.Renew != 3*time.Second {
		t.Errorf("the defaults are %+v, %v", e.o, err)
	}
	if _, err := New(nil, options("a")); err == nil {
		t.Error("a nil rest.Config is no error")
	}
}

// failure returns the error with which Run returns at once.
func (w *world) failure(o Options) error {
	w.Helper()
	a := w.start(o, 0)
	time.Sleep(time.Second)
	synctest.Wait()
	select {
	case <-a.done:
		return a.err
	default:
		w.Errorf("Run does not return: %+v", a.Health())
		return nil
	}
}

func (w *world) wantText(err error, want string) {
	w.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		w.Errorf("the error is %v, want %q", err, want)
	}
}

func TestAMissingNamespaceIsAnErrorAtOnce(t *testing.T) {
	bubble(t, func(t *world) {
		o := options("a")
		o.Namespace = "nowhere"
		t.wantText(t.failure(o), "create the namespace nowhere")
	})
}

func TestACoordinatedLeaseIsAnErrorAtOnce(t *testing.T) {
	bubble(t, func(t *world) {
		_, err := t.server.Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "rollout"},
			Spec:       coordinationv1.LeaseSpec{Strategy: new(coordinationv1.OldestEmulationVersion)},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.wantText(t.failure(options("a")), "coordinated elections are not supported")
	})
}

// user returns a user that may use Leases. Its token is its name.
func user(name string, verbs ...string) apisim.User {
	return apisim.User{Name: name, Token: name, Allow: []apisim.Rule{
		{Verbs: verbs, Resources: []string{"leases.coordination.k8s.io"}},
	}}
}

func (w *world) setUsers(users ...apisim.User) {
	w.Helper()
	if err := w.server.SetUsers(users...); err != nil {
		w.Fatal(err)
	}
}

func TestAForbiddenVerbIsAnErrorAtOnceThatNamesIt(t *testing.T) {
	bubble(t, func(t *world) {
		t.setUsers(user("a", "*"), user("get", "list", "watch", "create", "update"),
			user("create", "get", "list", "watch", "update"),
			user("update", "get", "list", "watch", "create"))
		for _, verb := range []string{"get", "create"} {
			t.wantText(t.failure(options(verb)), "grant the verb "+verb+" on leases")
		}
		// A standby needs update when the holder is gone. Run returns an error at its start if it
		// may not update.
		t.term(t.start(options("a"), 0), 0)
		t.wantText(t.failure(options("update")), "grant the verb update on leases")
		t.wantText(t.failure(options("stranger")), "check the credentials")
	})
}

func TestAForbiddenWatchIsReplacedByReads(t *testing.T) {
	bubble(t, func(t *world) {
		t.setUsers(user("a", "get", "create", "update"), user("b", "get", "create", "update"))
		a := t.start(options("a"), 0)
		t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(time.Minute)
		t.wantText(b.Health().Polling, "the lease is read every 3s: list lease ops/rollout: ")
		if n := len(t.server.Requests().Of(by("b", "get"))); n < 20 || n > 22 {
			t.Errorf("b read %d times in a minute, want 21", n)
		}
		stopped := time.Now()
		a.stop()
		_, span := t.term(b, 0)
		t.wantBetween("the take-over", span.begin.Sub(stopped), 0, 3*time.Second+250*time.Millisecond)
		t.setUsers(user("a", "*"), user("b", "*"))
		time.Sleep(5 * time.Minute)
		if err := b.Health().Polling; err != nil {
			t.Errorf("b may watch, and still polls: %v", err)
		}
	})
}

func TestTwoRunsOfOneElectorAreAnError(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		t.term(a, 0)
		err := a.Run(t.Context(), func(context.Context, *Term) error { return errLead })
		t.wantText(err, "Run is running")
	})
}

func TestAnElectorRunsAgain(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		t.term(a, 0)
		a.stop()
		<-a.done
		err := a.Run(t.Context(), func(context.Context, *Term) error { return errLead })
		t.wantErr(err, errLead)
	})
}

// TestTheRoleIsWhatAnElectionNeeds runs elections with the rights of the manifest.
func TestTheRoleIsWhatAnElectionNeeds(t *testing.T) {
	data, err := os.ReadFile("../testdata/rbac/election.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.Role
	if err := yaml.UnmarshalStrict(data, &role); err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *world) {
		rules, err := apisim.RulesOf(role.Namespace, role.Rules)
		if err != nil {
			t.Fatal(err)
		}
		t.setUsers(apisim.User{Name: "a", Token: "a", Allow: rules},
			apisim.User{Name: "b", Token: "b", Allow: rules})
		a := t.start(options("a"), 0)
		t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(10 * time.Second)
		a.stop()
		t.term(b, 0)
		if err := t.server.Requests().CheckRights(rules); err != nil {
			t.Error(err)
		}
		for _, e := range []*candidate{a, b} {
			if err := errors.Join(e.Health().Polling, e.Health().LastError); err != nil {
				t.Errorf("%s: %v", e.o.Identity, err)
			}
		}
	})
}
