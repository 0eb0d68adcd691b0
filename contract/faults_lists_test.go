package contract_test

import (
	"context"
	"net/http"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
)

// faultsOfRequests are those of whole requests.
func faultsOfRequests() []faultRow {
	return []faultRow{
		// A look at the version that is not answered is taken again.
		{name: "Delay of the check of the version", covers: "Delay", test: delayedCheck},
		// The watch begins at the version of the list.
		{name: "Call that writes between list and watch", covers: "Call", options: paged,
			test: func(w *world) {
				w.inject(firstWatch, apisim.Call(func(*http.Request) { w.removeBeside() }))
				l := w.has("a", "b", "c")
				l.agrees()
				l.lists(1)
			}},
		// The next page is of the state of the first.
		{name: "Call that writes between pages", covers: "Call", options: paged,
			test: writesBetweenPages},
		// Each failure in a row doubles the wait. A watch that is dropped before it is answered
		// has not ended well.
		{name: "Drop for five minutes", covers: "Drop",
			test: func(w *world) { dropped(w, 10*time.Millisecond) }},
		{name: "Drop after two seconds", covers: "Drop",
			test: func(w *world) { dropped(w, 2*time.Second) }},
		// Only the first list takes the state that the server has at hand.
		{name: "Lag of what is listed again", covers: "Lag", options: paged, test: laggingList},
	}
}

// endlessPages meets a fault on every page but the first one of a list.
func endlessPages(fault apisim.Fault) func(*world) {
	return func(w *world) {
		l := w.has("a", "b", "c")
		w.inject(apisim.Match{Verb: "list", Page: 2}, fault)
		for page := range 8 {
			w.server.Inject(apisim.Match{Verb: "list", Page: 3 + page}, fault)
		}
		w.mustList()
		w.create("d", "1")
		w.settle()
		l.agrees()
	}
}

// faultsOfLists are those of the pages and the bytes of a list.
func faultsOfLists() []faultRow {
	small := paged
	small.Transport.MaxListBytes = 1 << 20
	again := func(says string, fault apisim.Fault) func(*world) {
		return func(w *world) { listAgain(w, says, fault) }
	}
	const notAList = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	return []faultRow{
		// A list whose token expires is read again without pages.
		{name: "ExpireTokens", covers: "ExpireTokens", options: paged, test: expiredTokens},
		// A list whose pages stay empty, or whose tokens repeat, is read without pages.
		{name: "EmptyPages", covers: "EmptyPages", options: paged,
			test: endlessPages(apisim.EmptyPages())},
		{name: "RepeatTokens", covers: "RepeatTokens", options: paged,
			test: endlessPages(apisim.RepeatTokens())},
		// A server that refuses streamed lists is asked for pages.
		{name: "RefuseStreams", covers: "RefuseStreams", test: func(w *world) {
			w.inject(apisim.Match{}, apisim.Delay(100*time.Millisecond))
			w.inject(apisim.Match{Verb: "watch"}, apisim.RefuseStreams())
			l := w.has("a", "b")
			w.remove("b")
			w.after(time.Second)
			l.agrees()
		}},
		// A body that broke off is not decoded.
		{name: "CutWithin a list", covers: "CutWithin", options: paged,
			test: again("the connection ended in the middle", apisim.CutWithin(1))},
		// Half a list in protobuf is no list.
		{name: "Truncate a list", covers: "Truncate", options: paged, kinds: inProtobuf,
			test: again("malformed", apisim.Truncate(1))},
		// A list that cannot be decoded is no empty one.
		{name: "Garble a list", covers: "Garble", options: paged, kinds: inProtobuf,
			test: again("malformed", apisim.Garble(1))},
		// A page over the limit is refused.
		{name: "Inflate a list", covers: "Inflate", options: small,
			test: again("larger than the limit", apisim.Inflate(1, 8<<20))},
		// An answer that is no list is not taken for an empty one.
		{name: "Answer with another object in the place of a list", covers: "Answer",
			options: paged, test: again("instead of", answered("application/json", notAList))},
		// An answer of a type that was not asked for is not taken for an empty list.
		{name: "Answer with a page to log in", covers: "Answer", options: paged,
			test: again("text/html", answered("text/html", "<html>Please log in.</html>"))},
		// A list that is streamed and falls silent is read in pages.
		// A server that does not end streamed lists is not asked for a third.
		{name: "DropBookmarks of streamed lists", covers: "DropBookmarks", test: droppedEnds},
		// A list that is streamed in vain twice is read in pages.
		{name: "CutWithin streamed lists", covers: "CutWithin", test: func(w *world) {
			streamed := map[string]string{"sendInitialEvents": ""}
			w.inject(apisim.Match{Verb: "watch", Query: streamed}, apisim.CutWithin(1))
			l := w.follow()
			w.create("a", "1")
			w.startFactory()
			w.after(time.Minute)
			l.agrees()
			l.lists(3)
		}},
		// A streamed list that falls silent is ended.
		{name: "Stall of a streamed list", covers: "Stall", test: stalledList},
		// A list that ceases to come is ended.
		{name: "Stall of a list in pages", covers: "Stall",
			elsewhere: TestP15_ListThatFallsSilentIsEnded},
		// Each byte of a list shows that the server is there.
		{name: "Stall of a list, now and then", covers: "Stall",
			elsewhere: TestP15_SlowListsAreLeftAlone},
		// Lists obey the timeout of the rest.Config.
		{name: "Stall of a list with a timeout", covers: "Stall", test: func(w *world) {
			w.reconnect(paged, func(c *rest.Config) { c.Timeout = 30 * time.Second })
			w.inject(firstList, apisim.Stall(1, 0))
			l := w.has("a", "b", "c")
			l.agrees()
			l.lists(2)
		}},
	}
}

// listAgain makes the informer list again, under a fault of lists that ends after a minute,
// and checks that the handler receives nothing meanwhile: an answer that is no list says
// nothing of deletes.
func listAgain(w *world, says string, fault apisim.Fault) {
	l := w.has("a", "b", "c")
	l.Take()
	injection := w.inject(apisim.Match{Verb: "list"}, apisim.Delay(100*time.Millisecond), fault)
	w.mustList()
	w.after(time.Minute)
	l.receives()
	if met := injection.Met(); met == 0 || met > 12 {
		w.Errorf("%d lists in a minute", met)
	}
	l.says(says)
	injection.Lift()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.receives("Updated default/a 1→2", "Deleted default/b tombstone 1")
}

// delayedCheck delays the check of the version of a server that was away, for ever.
func delayedCheck(w *world) {
	l := w.has("a", "b")
	w.server.SetAvailable(false)
	w.after(time.Minute)
	look := apisim.Match{Verb: "list", Query: map[string]string{"limit": "1"}}
	w.inject(look.Nth(1), apisim.Delay(24*time.Hour))
	w.server.SetAvailable(true)
	w.update("a", "2")
	w.remove("b")
	w.after(5 * time.Minute)
	l.agrees()
	l.lists(1)
}

// writesBetweenPages changes objects of the first page while the second is read. The
// first list comes in one page, so it is the second one.
func writesBetweenPages(w *world) {
	l := w.has("a", "b", "c")
	w.inject(apisim.Match{Verb: "list"}, apisim.Delay(100*time.Millisecond))
	w.inject(apisim.Match{Verb: "list", Query: map[string]string{"continue": ""}}.Nth(1),
		apisim.Call(func(*http.Request) { w.removeBeside() }))
	w.mustList()
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

// dropped breaks every connection before it is answered, as a balancer does that has no
// server behind it, for five minutes.
func dropped(w *world, held time.Duration) {
	l := w.has("a", "b")
	drops := w.inject(apisim.Match{}, apisim.Delay(held), apisim.Drop())
	n := w.requestsIn(5 * time.Minute)
	if h := w.health(); n < 5 || n > 35 || h.State != "Backoff" {
		w.Errorf("%d requests in five minutes, health is %s after %v", n, h.State, h.LastError)
	}
	l.says("is the API server reachable?")
	drops.Lift()
	w.settle()
	l.agrees()
	l.lists(1)
}

// requestsIn cuts the connections, writes, and returns how many requests follow in a time.
func (w *world) requestsIn(d time.Duration) int {
	w.server.ForgetRequests()
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.after(d)
	return len(w.server.Requests())
}

// expiredTokens refuses every page but the first.
func expiredTokens(w *world) {
	l := w.has("a", "b", "c", "d", "e")
	w.inject(apisim.Match{Verb: "list"}, apisim.Delay(100*time.Millisecond), apisim.ExpireTokens())
	w.mustList()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(3) // with the one that began in vain
}

// laggingList lists again from a server that has not received the objects of the cache.
func laggingList(w *world) {
	l := w.has("a", "b", "c")
	lag := w.inject(apisim.Match{}, apisim.Lag())
	w.update("a", "2")
	w.remove("b")
	w.create("d", "1")
	synctest.Wait()
	l.Take()
	w.mustList()
	w.settle()
	l.agrees()
	l.receives()
	lag.Lift()
	w.update("a", "3")
	w.settle()
	l.agrees()
}

// droppedEnds lets no streamed list come to its end.
func droppedEnds(w *world) {
	w.create("a", "1")
	l := w.follow()
	w.inject(apisim.Match{}, apisim.DropBookmarks())
	w.startFactory()
	w.after(3 * time.Minute)
	l.agrees()
	l.lists(2)
	for _, n := range []string{"2", "3", "4"} {
		w.away(func() { w.update("a", n) })
		w.after(3 * time.Minute)
		l.agrees()
	}
	if all, _ := w.streamedLists(); all != 2 {
		w.Errorf("%d lists were streamed in vain, want 2", all)
	}
}

// streamedLists returns the numbers of those that were asked for, and of those that were refused.
func (w *world) streamedLists() (all, refused int) {
	for _, r := range w.server.Requests() {
		if r.Query.Get("sendInitialEvents") == "true" {
			all++
			if r.Status >= 400 {
				refused++
			}
		}
	}
	return all, refused
}

// stalledList lets the first list begin and not go on.
func stalledList(w *world) {
	w.create("a", "1")
	w.create("b", "1")
	l := w.follow()
	w.inject(firstWatch, apisim.Stall(2, 0))
	w.startFactory()
	w.after(2*time.Minute - time.Second)
	if got := w.probe.state(); len(got) != 0 || w.probe.informer().HasSynced() {
		w.Errorf("the cache holds %v before the list is complete", got)
	}
	w.remove("b")
	w.after(2 * time.Second)
	l.agrees()
	l.lists(2)
}
