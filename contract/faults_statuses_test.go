package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// faultsOfStatuses are answers that are errors.
func faultsOfStatuses() []faultRow {
	const grant = "grant list and watch on configmaps"
	rows := []faultRow{
		// Health reports that a permission is missing.
		{name: "Refuse 403", covers: "Refuse", test: func(w *world) {
			l := w.has("a", "b")
			refused := w.inject(apisim.Match{}, apisim.Refuse(http.StatusForbidden, 0))
			w.denied(l, grant, refused.Lift)
		}},
		// Health reports that the resource is missing. It is listed again.
		{name: "Refuse 404", covers: "Refuse", test: notFound},
		// A version that is gone again is a failure of the server, which is waited for.
		{name: "Refuse 410 again and again", covers: "Refuse", options: paged,
			test: goneAgainAndAgain},
		// Health reports that the credentials are not accepted.
		{name: "SetUsers without it", covers: "SetUsers", test: func(w *world) {
			l := w.has("a", "b")
			w.setUsers(apisim.User{Name: "other", Token: "other"})
			w.denied(l, "does not accept these credentials", func() { w.setUsers() })
		}},
		// Health reports that a permission is missing.
		{name: "SetUsers who may not watch", covers: "SetUsers", test: func(w *world) {
			rules := []apisim.Rule{
				{Verbs: []string{"list", "watch"}, Resources: []string{"configmaps"}},
			}
			user := apisim.User{Name: "reader", Token: "token", Allow: rules}
			w.reconnect(tidings.FactoryOptions{},
				func(c *rest.Config) { c.BearerToken = user.Token })
			w.setUsers(user)
			l := w.has("a", "b")
			w.setUsers(apisim.User{Name: user.Name, Token: user.Token})
			w.denied(l, grant, func() { w.setUsers(user) })
		}},
	}
	for _, code := range []int{400, 401, 403, 404, 409, 410, 413, 429, 500, 502, 503, 504} {
		rows = append(rows,
			// Each failure in a row doubles the wait, up to 30 seconds, give or take a half.
			faultRow{name: fmt.Sprint("Refuse ", code, " for five minutes"), covers: "Refuse",
				test: func(w *world) { refused(w, 5*time.Minute, code, 0, 35) }},
			// No wait is shorter than the one that the server asks for.
			faultRow{name: fmt.Sprint("Refuse ", code, " with Retry-After"), covers: "Refuse",
				test: func(w *world) { refused(w, 10*time.Minute, code, time.Minute, 11) }})
	}
	return rows
}

// refused refuses every request for a time.
func refused(w *world, d time.Duration, code int, retryAfter time.Duration, most int) {
	l := w.has("a", "b")
	injection := w.inject(apisim.Match{}, aMoment, apisim.Refuse(code, retryAfter))
	if n := w.requestsIn(d); n < 5 || n > most {
		w.Errorf("%d requests in %v, want 5 to %d", n, d, most)
	}
	injection.Lift()
	w.settle()
	l.agrees()
}

// waits checks the health of an informer that waits, and that it answers from the cache.
func (w *world) waits(state tidings.State, says string) {
	w.Helper()
	h := w.health()
	if h.State != state || !strings.Contains(fmt.Sprint(h.LastError), says) ||
		!h.RetryAt.After(time.Now()) || !h.Synced || h.Objects != 2 {
		w.Errorf("health is %+v, want %s with an error that says %q", h, state, says)
	}
}

func (w *world) setUsers(users ...apisim.User) {
	w.Helper()
	w.must(w.server.SetUsers(users...))
}

// denied checks an informer whose permission was taken, and that it heals.
func (w *world) denied(l *ledger, says string, allow func()) {
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.waits(tidings.StateForbidden, says)
	allow()
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(1)
}

// notFound refuses every request as if the resource were missing. Only a list shows the changes of
// its objects meanwhile.
func notFound(w *world) {
	l := w.has("a", "b")
	injection := w.inject(apisim.Match{}, apisim.Refuse(http.StatusNotFound, 0))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.waits(tidings.StateNoSuchResource, "CustomResourceDefinition")
	injection.Lift()
	w.remove("b")
	w.settle()
	l.agrees()
	failed := uint64(0)
	for _, r := range w.server.Requests() {
		if r.Status >= 400 && (r.Verb == "list" || r.Query.Get("sendInitialEvents") == "true") {
			failed++
		}
	}
	l.lists(2 + failed)
}

// goneAgainAndAgain answers every list, and refuses every watch because its version is gone:
// a list alone does not prove the server well.
func goneAgainAndAgain(w *world) {
	l := w.has("a", "b")
	synctest.Wait()
	gone := apisim.Refuse(http.StatusGone, 0)
	injection := w.inject(apisim.Match{Verb: "watch"}, aMoment, gone)
	if n := w.requestsIn(10 * time.Minute); n > 80 {
		w.Errorf("%d requests in ten minutes", n)
	}
	injection.Lift()
	w.settle()
	l.agrees()
}
