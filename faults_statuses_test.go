package tidings_test

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
	rows := []faultRow{
		{
			// Health says that a permission is missing.
			name: "Refuse 403", covers: "Refuse", test: forbidden,
		},
		{
			// Health says that the resource is missing.
			// A resource that was away is listed again.
			name: "Refuse 404", covers: "Refuse", test: notFound,
		},
		{
			// A watch whose version is gone leads to a list.
			name: "Refuse 410", covers: "Refuse", test: gone,
		},
		{
			// A version that is gone again is a failure of the server, which is waited for.
			name: "Refuse 410 again and again", covers: "Refuse", options: paged, test: goneAgainAndAgain,
		},
		{
			// Health says that the credentials are not accepted.
			name: "SetUsers without it", covers: "SetUsers", test: unknownUser,
		},
		{
			// Health says that a permission is missing.
			name: "SetUsers who may not watch", covers: "SetUsers", test: userWithoutPermission,
		},
	}
	for _, code := range []int{400, 401, 403, 404, 409, 410, 413, 429, 500, 502, 503, 504} {
		rows = append(rows, faultRow{
			name: fmt.Sprint("Refuse ", code, " for five minutes"), covers: "Refuse",
			test: func(w *world) { refused(w, code) },
			// Each failure in a row doubles the wait.
		}, faultRow{
			name: fmt.Sprint("Refuse ", code, " with Retry-After"), covers: "Refuse",
			test: func(w *world) { refusedWithRetryAfter(w, code) },
			// No wait is shorter than what the server asks for.
		})
	}
	return rows
}

// refusing has every request refused for a time, and returns how many were sent. An
// answer takes a moment, as in life.
func (w *world) refusing(d time.Duration, code int, retryAfter time.Duration) int {
	w.server.ForgetRequests()
	injection := w.inject(apisim.Match{}, apisim.Delay(10*time.Millisecond), apisim.Refuse(code, retryAfter))
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.after(d)
	injection.Lift()
	return len(w.server.Requests())
}

// refused has the server say nothing else for five minutes: the waits grow to 30
// seconds, give or take a half.
func refused(w *world, code int) {
	l := w.has("a", "b")
	if n := w.refusing(5*time.Minute, code, 0); n < 5 || n > 35 {
		w.Errorf("%d requests in five minutes", n)
	}
	w.settle()
	l.agrees()
}

// refusedWithRetryAfter has the server ask for a minute each time.
func refusedWithRetryAfter(w *world, code int) {
	l := w.has("a", "b")
	if n := w.refusing(10*time.Minute, code, time.Minute); n < 5 || n > 11 {
		w.Errorf("%d requests in ten minutes, of which each was to wait for one", n)
	}
	w.settle()
	l.agrees()
}

// waits checks what the informer says while it waits, and that it answers from the cache.
func (w *world) waits(state tidings.State, says string) {
	w.Helper()
	h := w.probe.informer().Health()
	if h.State != state || h.LastError == nil || !strings.Contains(h.LastError.Error(), says) || !h.RetryAt.After(time.Now()) || !h.Synced || h.Objects != 2 {
		w.Errorf("health is %+v, want %s with an error that says %q", h, state, says)
	}
}

// forbidden takes a permission away.
func forbidden(w *world) {
	l := w.has("a", "b")
	injection := w.inject(apisim.Match{}, apisim.Refuse(http.StatusForbidden, 0))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.waits(tidings.Forbidden, "grant list and watch on configmaps")
	injection.Lift()
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(1)
}

// unknownUser has the server accept nobody but another user.
func unknownUser(w *world) {
	l := w.has("a", "b")
	if err := w.server.SetUsers(apisim.User{Name: "other", Token: "other"}); err != nil {
		w.Fatal(err)
	}
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.waits(tidings.Forbidden, "does not accept these credentials")
	if err := w.server.SetUsers(); err != nil {
		w.Fatal(err)
	}
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(1)
}

// userWithoutPermission takes the permission away that the informer's user has.
func userWithoutPermission(w *world) {
	user := apisim.User{Name: "reader", Token: "token", Allow: []apisim.Rule{{Verbs: []string{"list", "watch"}, Resources: []string{"configmaps"}}}}
	w.reconnect(tidings.FactoryOptions{}, func(c *rest.Config) { c.BearerToken = user.Token })
	set := func(u apisim.User) {
		if err := w.server.SetUsers(u); err != nil {
			w.Fatal(err)
		}
	}
	set(user)
	l := w.has("a", "b")
	set(apisim.User{Name: user.Name, Token: user.Token})
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.waits(tidings.Forbidden, "grant list and watch on configmaps")
	set(user)
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(1)
}

// notFound has the server not know the resource for a while. What becomes of its objects
// meanwhile is known from a list alone.
func notFound(w *world) {
	l := w.has("a", "b")
	injection := w.inject(apisim.Match{}, apisim.Refuse(http.StatusNotFound, 0))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.waits(tidings.NoSuchResource, "CustomResourceDefinition")
	injection.Lift()
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(2 + w.failedLists())
}

// failedLists is how many lists were refused.
func (w *world) failedLists() uint64 {
	refused := uint64(0)
	for _, r := range w.server.Requests() {
		if r.Status >= 400 && (r.Verb == "list" || r.Query.Get("sendInitialEvents") == "true") {
			refused++
		}
	}
	return refused
}

// gone has a watch resumed at a version that is gone, once.
func gone(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch", Query: map[string]string{"resourceVersion": w.versions["b"]}}, apisim.Delay(10*time.Millisecond), apisim.Refuse(http.StatusGone, 0))
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(2)
}

// goneAgainAndAgain has every list go well, and then its watch told that the version is
// gone: a list alone does not prove the server well.
func goneAgainAndAgain(w *world) {
	l := w.has("a", "b")
	synctest.Wait()
	w.server.ForgetRequests()
	injection := w.inject(apisim.Match{Verb: "watch"}, apisim.Delay(10*time.Millisecond), apisim.Refuse(http.StatusGone, 0))
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.after(10 * time.Minute)
	if n := len(w.server.Requests()); n > 80 {
		w.Errorf("%d requests in ten minutes", n)
	}
	injection.Lift()
	w.settle()
	l.agrees()
}
