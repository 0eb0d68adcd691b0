package tidings_test

import (
	"context"
	"io"
	"net/http"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// faultsOfRequests are those of whole requests.
func faultsOfRequests() []faultRow {
	return []faultRow{
		{
			// A watch that is not answered ends with its own timeout.
			name: "Delay of a watch", covers: "Delay", test: delayedWatch,
		},
		{
			// A look at the version that is not answered is taken again.
			name: "Delay of the look at the version", covers: "Delay", test: delayedLook,
		},
		{
			// The watch begins at the version of the list.
			name: "Call that writes between list and watch", covers: "Call", options: paged, test: writesBetweenListAndWatch,
		},
		{
			// The next page is of the state of the first.
			name: "Call that writes between pages", covers: "Call", options: paged, test: writesBetweenPages,
		},
		{
			// An answer that is no list is not taken for an empty one.
			name: "Answer with another object in the place of a list", covers: "Answer", options: paged, test: anotherObjectIsNoList,
		},
		{
			// An answer of a type that was not asked for is not taken for an empty list.
			name: "Answer with a page to log in", covers: "Answer", options: paged, test: pageToLogIn,
		},
		{
			// Each failure in a row doubles the wait.
			name: "Drop for five minutes", covers: "Drop", test: dropped,
		},
		{
			// A list whose token expires is read again without pages.
			name: "ExpireTokens", covers: "ExpireTokens", options: paged, test: expiredTokens,
		},
		{
			// A list whose pages stay empty is read without pages.
			name: "EmptyPages", covers: "EmptyPages", existing: "TestAnyAnswerAnywhere",
		},
		{
			// A list whose tokens repeat is read without pages.
			name: "RepeatTokens", covers: "RepeatTokens", existing: "TestAnyAnswerAnywhere",
		},
		{
			// A server that refuses streamed lists is asked for pages.
			// What such a server answers is known.
			name: "RefuseStreams", covers: "RefuseStreams", test: refusedStreams,
		},
		{
			// Only the first list takes what the server has at hand.
			name: "Lag of what is listed again", covers: "Lag", options: paged, test: laggingList,
		},
	}
}

// delayedWatch has a watch that is never answered.
func delayedWatch(w *world) {
	w.inject(apisim.Match{Verb: "watch"}.Nth(2), apisim.Delay(24*time.Hour))
	l := w.has("a", "b")
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.after(12 * time.Minute)
	l.agrees()
	l.lists(1)
}

// delayedLook has the look at the version of a server that was away never answered.
func delayedLook(w *world) {
	l := w.has("a", "b")
	w.server.SetAvailable(false)
	w.after(time.Minute)
	look := w.inject(apisim.Match{Verb: "list", Query: map[string]string{"limit": "1"}}.Nth(1), apisim.Delay(24*time.Hour))
	w.server.SetAvailable(true)
	w.update("a", "2")
	w.remove("b")
	w.after(5 * time.Minute)
	if look.Met() != 1 {
		w.Errorf("%d looks were delayed, want 1", look.Met())
	}
	l.agrees()
	l.lists(1)
}

// writesBetweenListAndWatch changes the collection when it is listed and not watched yet.
func writesBetweenListAndWatch(w *world) {
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Call(func(*http.Request) { w.removeBeside() }))
	l := w.has("a", "b", "c")
	l.agrees()
	l.lists(1)
}

// writesBetweenPages changes what the first page has said while the second is read. The
// first list comes in one page, so it is the second one.
func writesBetweenPages(w *world) {
	l := w.has("a", "b", "c")
	w.inject(apisim.Match{Verb: "list"}, apisim.Delay(100*time.Millisecond))
	w.inject(apisim.Match{Verb: "list", Query: map[string]string{"continue": ""}}.Nth(1),
		apisim.Call(func(*http.Request) { w.removeBeside() }))
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(0, http.StatusGone))
	w.server.CutConnections()
	w.settle()
	l.agrees()
	l.lists(2)
}

// removeBeside removes b, which a fault's goroutine may do.
func (w *world) removeBeside() {
	if _, err := w.server.Delete(context.Background(), configMaps, "default", "b"); err != nil {
		w.Error(err)
	}
}

// listedAgain has the informer list again, under a fault of lists that ends after a
// minute, and checks that nobody was told of anything meanwhile: an answer that is no
// list says nothing of what was deleted.
func (w *world) listedAgain(l *ledger, says string, faults ...apisim.Fault) {
	w.Helper()
	injection := w.inject(apisim.Match{Verb: "list"}, append([]apisim.Fault{apisim.Delay(100 * time.Millisecond)}, faults...)...)
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(0, http.StatusGone))
	w.server.CutConnections()
	w.after(time.Minute)
	if adds, updates, deletes := l.told(); adds+updates+len(deletes) > 0 {
		w.Errorf("the handler was told of %d adds, %d updates, and the deletes of %v, and nothing has changed", adds, updates, deletes)
	}
	if met := injection.Met(); met == 0 || met > 12 {
		w.Errorf("%d lists in a minute", met)
	}
	l.says(says)
	injection.Lift()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	if adds, updates, deletes := l.told(); adds != 0 || updates != 1 || len(deletes) != 1 {
		w.Errorf("told of %d adds, %d updates and the deletes of %v", adds, updates, deletes)
	}
}

// anotherObjectIsNoList has something answer lists that is JSON and no list, as a
// gateway does.
func anotherObjectIsNoList(w *world) {
	l := w.has("a", "b", "c")
	w.listedAgain(l, "instead of", apisim.Answer(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, `{"kind":"Status","apiVersion":"v1","status":"Success"}`) //nolint:errcheck // the client may be gone
	}))
}

// pageToLogIn has a proxy answer lists with a page and the status 200.
func pageToLogIn(w *world) {
	l := w.has("a", "b", "c")
	w.listedAgain(l, "text/html", apisim.Answer(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		io.WriteString(rw, "<html>Please log in.</html>") //nolint:errcheck // the client may be gone
	}))
}

// dropped has every connection break before it is answered, for five minutes.
func dropped(w *world) {
	l := w.has("a", "b")
	w.server.ForgetRequests()
	drops := w.inject(apisim.Match{}, apisim.Delay(10*time.Millisecond), apisim.Drop())
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.after(5 * time.Minute)
	drops.Lift()
	if n := len(w.server.Requests()); n < 5 || n > 35 {
		w.Errorf("%d requests in five minutes", n)
	}
	w.settle()
	l.agrees()
	l.lists(1)
}

// expiredTokens has every page but the first refused.
func expiredTokens(w *world) {
	l := w.has("a", "b", "c", "d", "e")
	w.inject(apisim.Match{Verb: "list"}, apisim.Delay(100*time.Millisecond), apisim.ExpireTokens())
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(0, http.StatusGone))
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(3) // with the one that began in vain
}

// refusedStreams has a server without streamed lists.
func refusedStreams(w *world) {
	w.inject(apisim.Match{}, apisim.Delay(100*time.Millisecond))
	w.inject(apisim.Match{Verb: "watch"}, apisim.RefuseStreams())
	l := w.has("a", "b")
	w.remove("b")
	w.after(time.Second)
	l.agrees()
}

// laggingList lists again from a server that has not heard of what the cache holds.
func laggingList(w *world) {
	l := w.has("a", "b", "c")
	lag := w.inject(apisim.Match{}, apisim.Lag())
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(0, http.StatusGone))
	w.update("a", "2")
	w.remove("b")
	w.create("d", "1")
	synctest.Wait()
	l.told()
	w.server.CutConnections()
	w.settle()
	l.agrees()
	if adds, updates, deletes := l.told(); adds+updates+len(deletes) > 0 {
		w.Errorf("told of %d adds, %d updates and the deletes of %v by a server that lags", adds, updates, deletes)
	}
	lag.Lift()
	w.update("a", "3")
	w.settle()
	l.agrees()
}
