package controller_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
)

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// probe sends a probe to a manager, and returns the status and the checks.
func probe(m *controller.Manager, path string) (code int, checks string) {
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", path+"?verbose", nil))
	return answer.Code, answer.Body.String()
}

// checkProbe checks that a probe is answered with a status and a text.
func checkProbe(t *testing.T, m *controller.Manager, path string, want int, part string) {
	t.Helper()
	if code, checks := probe(m, path); code != want || !strings.Contains(checks, part) {
		t.Errorf("%s answers %d, want %d with %q:\n%s", path, code, want, part, checks)
	}
}

// electedManager returns a manager of the controller "test" that competes for the Lease ops/test.
func electedManager(w *world, log *calls) *controller.Manager {
	w.Helper()
	create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
	m, err := controller.NewManager(w.factory, controller.ManagerOptions{
		Guard: w.guard, Logger: discard,
		Election: &controller.Election{Namespace: "ops", Name: "test", Identity: "replica"},
	})
	fatal(w.T, err)
	fatal(w.T, m.Add(table(w, "test", log)))
	return m
}

// awaitElection waits until the manager's election is in a state.
func awaitElection(w *world, m *controller.Manager, want election.State) {
	w.Helper()
	for range 600 {
		if synctest.Wait(); m.Health().Election.State == want {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.Fatalf("after a minute the election is %+v, want %s", m.Health().Election, want)
}

// checkLeads waits until the manager leads, and checks that its controller has called the key
// a/x: twice, if the cache did not catch up within a second.
func checkLeads(w *world, m *controller.Manager, log *calls) {
	w.Helper()
	awaitElection(w, m, election.Leading)
	time.Sleep(2 * time.Second) // no holder has handed over: the caches catch up first
	called := log.take()
	if len(called) == 0 || slices.ContainsFunc(called, func(s string) bool { return s != "test a/x" }) {
		w.Errorf("the calls of a term: %q, want test a/x", called)
	}
	checkProbe(w.T, m, "/livez", http.StatusOK, "[+] controller test\n")
	checkProbe(w.T, m, "/readyz", http.StatusOK, "[+] controller test\n")
}

// holdLease writes a holder into the Lease.
func holdLease(w *world, holder string) {
	w.Helper()
	lease, err := apisim.Get[*coordinationv1.Lease](w.ctx, w.server, "ops", "test")
	fatal(w.T, err)
	lease.Spec.HolderIdentity = &holder
	update(w, lease)
}

// TestC11_AReplicaThatLosesItsLease is alive, and ready as a standby. It makes calls again in its
// next term, which has another identity.
func TestC11_AReplicaThatLosesItsLease(t *testing.T) {
	for name, lose := range map[string]func(w *world) (giveBack func()){
		"renewals fail": func(w *world) func() {
			match := apisim.Match{Resource: "leases.coordination.k8s.io", Verb: "update"}
			return w.server.Inject(match, apisim.Refuse(http.StatusServiceUnavailable, 0)).Lift
		},
		"the server is away": func(w *world) func() {
			w.server.SetAvailable(false)
			w.server.CutConnections()
			return func() { w.server.SetAvailable(true) }
		},
		"the Lease is deleted": func(w *world) func() {
			match := apisim.Match{Resource: "leases.coordination.k8s.io", Verb: "create"}
			refused := w.server.Inject(match, apisim.Refuse(http.StatusServiceUnavailable, 0))
			_, err := w.server.Delete(w.ctx, leases, "ops", "test")
			fatal(w.T, err)
			return refused.Lift
		},
		"another program takes the Lease": func(w *world) func() {
			holdLease(w, "other")
			return func() { holdLease(w, "") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				x := create(w, configMap("a", "x"))
				var log calls
				m := electedManager(w, &log)
				stop := run(w, m)
				checkLeads(w, m, &log)
				former := m.Health().Election.Holder

				giveBack := lose(w)
				awaitElection(w, m, election.Standby)
				checkProbe(t, m, "/livez", http.StatusOK, "[+] controller test\n")
				checkProbe(t, m, "/readyz", http.StatusOK, "[+] election (standby)\n")
				update(w, labelled(x, "changed"))
				log.expect(t)

				giveBack()
				checkLeads(w, m, &log)
				if holder := m.Health().Election.Holder; holder == former {
					t.Errorf("the holder of both terms is %s", holder)
				}
				fatal(t, stop())
			})
		})
	}
}

// TestReadinessOfALeader names the informer that is not synced, and the controller that waits for it.
func TestReadinessOfALeader(t *testing.T) {
	inWorld(t, func(w *world) {
		lists := w.server.Inject(apisim.Match{Verb: "watch", Resource: "configmaps"}, apisim.Stall(0, 0))
		var log calls
		m := electedManager(w, &log)
		stop := run(w, m)
		awaitElection(w, m, election.Leading)
		checkProbe(t, m, "/livez", http.StatusOK, "ok")
		checkProbe(t, m, "/readyz", http.StatusServiceUnavailable,
			"[-] controller test is Waiting, and waits for configmaps.v1\n")
		checkProbe(t, m, "/readyz", http.StatusServiceUnavailable,
			"[-] informer configmaps.v1 is not synced: ")
		lists.Lift()
		time.Sleep(5 * time.Second)
		checkProbe(t, m, "/readyz", http.StatusOK, "[+] controller test\n")
		fatal(t, stop())
	})
}

// failing is a runner that ends with an error.
type failing struct{ controller.Runner }

func (failing) Name() string                                   { return "failing" }
func (failing) Health() controller.Health                      { return controller.Health{Name: "failing"} }
func (failing) RunTerm(context.Context, controller.Term) error { return errLater }

// TestLivenessOfAManagerWhoseControllerFailed names the controller and its error.
func TestLivenessOfAManagerWhoseControllerFailed(t *testing.T) {
	inWorld(t, func(w *world) {
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Logger: discard})
		fatal(t, err)
		fatal(t, m.AddController(failing{}))
		if err := m.Run(w.ctx); !errors.Is(err, errLater) {
			t.Errorf("the manager ended with %v", err)
		}
		checkProbe(t, m, "/livez", http.StatusServiceUnavailable,
			"[-] controller failing "+errLater.Error())
	})
}

// TestLivenessOfAManagerWhoseCallsHang: while a worker is free, or no key waits, long calls are no hang.
func TestLivenessOfAManagerWhoseCallsHang(t *testing.T) {
	inWorld(t, func(w *world) {
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{HungAfter: 10 * time.Minute, Logger: discard})
		fatal(t, err)
		release := make(chan struct{})
		fatal(t, m.AddController(newController(w, options{Workers: 2},
			func(context.Context, request) (controller.Result, error) {
				<-release
				return controller.Result{}, nil
			})))
		stop := run(w, m)
		live := func(after time.Duration) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			checkProbe(t, m, "/livez", http.StatusOK, "ok")
		}
		create(w, configMap("a", "x"))
		live(time.Hour)
		create(w, configMap("b", "y"))
		live(time.Hour)
		create(w, configMap("b", "z"))
		synctest.Wait()
		checkProbe(t, m, "/livez", http.StatusServiceUnavailable,
			"[-] controller test hangs: all 2 workers have been in calls for 1h0m0s, that of a/x is the oldest, and b/z waits\n")
		close(release)
		live(time.Second)
		fatal(t, stop())
	})
	_, err := controller.NewManager(new(tidings.Factory), controller.ManagerOptions{HungAfter: -1})
	if want := "ManagerOptions.HungAfter is -1ns: give a positive time"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a negative time leads to %v, want %s", err, want)
	}
}
