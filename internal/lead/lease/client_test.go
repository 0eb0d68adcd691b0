package lease

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
)

// TestTheRequestAfterOneWithoutAnAnswerLeavesItsConnection has a watch as the next one, too.
func TestTheRequestAfterOneWithoutAnAnswerLeavesItsConnection(t *testing.T) {
	for name, next := range map[string]func(w *world) error{
		"get": func(w *world) error { return w.read(w.Context()) },
		"watch": func(w *world) error {
			watch, err := w.client.watch(w.Context(), "0")
			if err == nil {
				watch.Stop()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				began := time.Now()
				w.silent.Store(true)
				err := w.read(w.Context())
				w.silent.Store(false)
				if took := time.Since(began); !IsTimeout(err) || took != 3*time.Second || w.closed.Load() != 0 {
					t.Errorf("after %v: %v", took, err)
				}
				for range 2 {
					if err := next(w); err != nil || w.closed.Load() != 1 {
						t.Errorf("idle connections were closed %d times, %v", w.closed.Load(), err)
					}
				}
			})
		})
	}
}

func TestARequestThatIsCanceledIsNoTimeout(t *testing.T) {
	bubble(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, cancel)
		w.silent.Store(true)
		err := w.read(ctx)
		if IsTimeout(err) || !errors.Is(err, context.Canceled) || w.timeouts.Load() != 0 {
			t.Errorf("%d timeouts, %v", w.timeouts.Load(), err)
		}
	})
}

// TestRequestsHaveNoRateLimit sends more than the limit of client-go lets through at once.
func TestRequestsHaveNoRateLimit(t *testing.T) {
	bubble(t, func(w *world) {
		began := time.Now()
		for range 100 {
			if err := w.read(w.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("100 requests took %v", time.Since(began))
		}
	})
}

func TestErrorsNameTheRemedy(t *testing.T) {
	bubble(t, func(w *world) {
		l := &Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leasetest.Namespace, Name: "other"}}
		want := func(err error, verb, text string, needsUser bool) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), text) || NeedsUser(verb, err) != needsUser {
				t.Errorf("%v, want %q", err, text)
			}
		}
		_, err := w.client.Get(w.Context(), "other")
		want(err, "get", "get lease ops/other: ", false)
		err = w.client.Delete(w.Context(), "rollout", "1")
		want(err, "delete", "delete lease ops/rollout: ", false)
		if !IsOutdated(err) || !apierrors.IsConflict(err) {
			t.Errorf("a Lease of another version is deleted: %v", err)
		}
		w.users("update")
		_, err = w.client.Create(w.Context(), l)
		want(err, "create", "grant the verb create on leases of the API group coordination.k8s.io "+
			"in the namespace ops", true)
		if err := w.server.SetUsers(apisim.User{Name: "b", Token: "b"}); err != nil {
			t.Fatal(err)
		}
		_, err = w.client.List(w.Context())
		want(err, "list", "list lease ops/rollout: ", true)
		want(err, "list", "check the credentials of the rest.Config", true)
	})
}

func TestATrialUpdateChangesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		before := leasetest.Get(t, w.server, "rollout")
		l := before.DeepCopy()
		note(l)
		if err := w.client.TryUpdate(w.Context(), l); err != nil {
			t.Fatal(err)
		}
		if now := leasetest.Get(t, w.server, "rollout"); now.ResourceVersion != before.ResourceVersion {
			t.Errorf("stored is %v", now)
		}
	})
}

// TestAnAnswerThatIsNoLeaseIsAnError has answers with the code 200 of something between the server
// and the process. As a Lease without a holder, one would be taken for released.
func TestAnAnswerThatIsNoLeaseIsAnError(t *testing.T) {
	requests := map[string]func(w *world, l *Lease) error{
		"get":    func(w *world, _ *Lease) error { return w.read(w.Context()) },
		"list":   func(w *world, _ *Lease) error { _, err := w.list(w.Context()); return err },
		"update": func(w *world, l *Lease) error { _, err := w.client.Update(w.Context(), l); return err },
		"create": func(w *world, l *Lease) error { _, err := w.client.Create(w.Context(), l); return err },
		"watch": func(w *world, _ *Lease) error {
			_, err := w.follower.watch(w.Context(), "1")
			return err
		},
	}
	bubble(t, func(w *world) {
		for verb, send := range requests {
			for _, answer := range []string{
				`{}`, `{"error":"no route"}`, `{"kind":"Status","apiVersion":"v1","status":"Success"}`,
				`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"rollout"}}`,
				`{"type":"MODIFIED","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{}}}`,
			} {
				l := leasetest.Get(t, w.server, "rollout")
				fault := w.server.Inject(leasetest.By("a", verb), apisim.Answer(
					func(out http.ResponseWriter, _ *http.Request) {
						out.Header().Set("Content-Type", "application/json")
						io.WriteString(out, answer) //nolint:errcheck // the client would see it
					}))
				before := w.view
				if err := send(w, l); err == nil || w.view != before {
					t.Errorf("a %s is answered by %s: the view is %v, %v", verb, answer, w.view, err)
				}
				fault.Lift()
			}
		}
	})
}

// TestAPageOfAProxyIsNoStatement has answers with other codes: they do not say that a Lease is
// gone, has another version, or is forbidden.
func TestAPageOfAProxyIsNoStatement(t *testing.T) {
	bubble(t, func(w *world) {
		for _, code := range []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden} {
			fault := w.server.Inject(leasetest.By("a", ""), leasetest.Page(code))
			before := w.view
			if err := w.read(w.Context()); !errors.Is(err, errNoLease) || IsOutdated(err) || NeedsUser("get", err) {
				t.Errorf("a get is answered by a page with the code %d: %v", code, err)
			}
			if _, err := w.follower.watch(w.Context(), "1"); apierrors.IsForbidden(err) || w.view != before {
				t.Errorf("a watch is answered by a page with the code %d: the view is %v, %v", code, w.view, err)
			}
			fault.Lift()
		}
	})
}
