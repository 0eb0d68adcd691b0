package contract_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

const (
	// harmLength is the time for which a server is harmful.
	harmLength = 10 * time.Minute
	// leastRequests is the number of requests that every informer may send meanwhile: one in ten
	// seconds.
	leastRequests = int(harmLength / (10 * time.Second))
	// asClientGo is about the number that client-go's informer sends when each of its watches is
	// answered at once, and in vain.
	asClientGo = 100
	// recovery bounds the time until an informer has caught up with an honest server.
	recovery = 10 * time.Minute
)

// harm is a fault that lasts for ten minutes, and what it may cost. Its rows are run with the
// drop-ins too.
type harm struct {
	name string
	// match selects the requests that are answered; Verb is list or watch.
	match apisim.Match
	// answer is called for each of them; faults are the faults otherwise.
	answer http.HandlerFunc
	faults []apisim.Fault
	// half of the requests meet the fault, as behind a load balancer.
	half bool
	// pages makes the server refuse streamed lists.
	pages bool
	// first begins the fault before the informer has listed.
	first bool
	// noList is set for a fault that does not make informers list: the server asks them to wait,
	// keeps a watch open, or sends objects that do not exist.
	noList bool
	// credible is set for an answer that looks like a correct list: an informer keeps it until
	// something leads to the next one.
	credible bool
	// most is the largest number of requests; 0 means leastRequests.
	most int
	// quiet is set for a fault that an informer cannot detect, at least not in the end or not
	// behind client-go's client, which waits by itself.
	quiet bool
}

// faultsThatHarm bound requests and time, and the state of the cache where lists are answered.
func faultsThatHarm() (rows []faultRow) {
	for _, h := range harms() {
		covers := "Delay"
		if h.answer != nil {
			covers = "Answer"
		}
		rows = append(rows, faultRow{name: h.name, covers: covers, dropIns: true, test: h.test})
	}
	return rows
}

// test makes the server harmful, and then honest again.
func (h harm) test(w *world) {
	for i := range 20 {
		w.create(fmt.Sprint("object-", i), "1")
	}
	w.server.RefuseStreamedLists(h.pages)
	if !h.first {
		w.startFactory()
		w.inStep(recovery)
	}
	faults := h.faults
	if h.answer != nil {
		faults = []apisim.Fault{apisim.Answer(h.answer)}
	}
	// Virtual time passes for informers that send requests without a pause, as client-go does
	// after bookmarks.
	slow := apisim.Delay(500 * time.Millisecond)
	faults = append([]apisim.Fault{slow}, faults...)
	inject := w.inject
	if h.half {
		h.match.Probability, inject = 0.5, w.server.Inject // few requests may all be answered well
	}
	injection := inject(h.match, faults...)
	w.server.ForgetRequests()
	w.server.CutConnections()
	if h.first {
		w.startFactory()
	}
	time.Sleep(time.Second)
	w.update("object-0", "2")
	w.after(harmLength)
	h.check(w)
	injection.Lift()
	w.update("object-1", "2")
	w.cost.recovered = w.inStep(10 * recovery)
	if w.cost.recovered > recovery && !h.credible {
		w.wrong("in step %v after the server was honest again", w.cost.recovered)
	}
}

// check compares what the fault has cost with the bounds.
func (h harm) check(w *world) {
	for _, r := range w.server.Requests() {
		// The honest pages of a list are one request.
		if len(r.Faults) > 0 || r.Query.Get("continue") == "" {
			w.cost.requests++
		}
	}
	most := h.most
	if most == 0 {
		most = leastRequests
	}
	if w.cost.requests > most {
		w.wrong("%d requests in %v, want at most %d", w.cost.requests, harmLength, most)
	}
	if now := w.health(); !h.quiet && now.Synced && now.LastError == nil && now.Dropped == 0 {
		w.wrong("its health reports no error")
	}
	followed := maps.Equal(w.probe.state(), w.serverState())
	if h.match.Verb == "watch" && !h.noList && !followed {
		w.wrong("the cache did not follow, though lists were answered")
	}
}

// wrong reports an error of every kind but client-go's informer, which is measured alone.
func (w *world) wrong(format string, values ...any) {
	w.Helper()
	if d, ok := w.probe.(dropInProbe); ok && d.measured {
		return
	}
	w.Errorf(format, values...)
}

// inStep waits until the cache is the server's state, and returns how long that took.
func (w *world) inStep(most time.Duration) time.Duration {
	w.Helper()
	began := time.Now()
	for time.Since(began) < most {
		synctest.Wait()
		if maps.Equal(w.probe.state(), w.serverState()) {
			return time.Since(began)
		}
		time.Sleep(time.Second)
	}
	return most
}

// harms are the harmful answers of a server, or of a proxy before it.
func harms() []harm {
	lists := apisim.Match{Verb: "list", Resource: "configmaps"}
	watches := apisim.Match{Verb: "watch", Resource: "configmaps"}
	once := apisim.Match{Verb: "watch", Resource: "configmaps", Times: 1}
	all := apisim.Match{Resource: "configmaps"}
	twice := apisim.Match{Resource: "configmaps", Times: 2}
	return []harm{
		{name: "429, retry after 68 years", match: all, answer: statusAnswer(429, 2147483647, "busy"),
			first: true},
		{name: "503 with Retry-After of a day, by a proxy", match: all, answer: askedToWait(86_400),
			quiet: true},
		{name: "ERROR event, retry after 68 years", match: watches,
			answer: errorEvent(429, 2147483647, "busy"), noList: true},
		{name: "ERROR event 500 for ever", match: watches,
			faults: []apisim.Fault{apisim.Fail(apisim.EachFrame, 500)}},
		{name: "ERROR event with a message of 256 KB", most: asClientGo, match: watches,
			answer: errorEvent(500, 0, strings.Repeat("x", 256<<10))},
		{name: "refusal with a message of 256 KB", match: all,
			answer: statusAnswer(500, 0, strings.Repeat("x", 256<<10)), first: true},
		{name: "a continue token that repeats", most: 2 * leastRequests, match: lists,
			answer: pagesOf(func(int) string { return "again" }, 2), pages: true, first: true},
		{name: "pages that stay empty", most: 3 * leastRequests, match: lists,
			answer: pagesOf(newToken, 0), pages: true, first: true},
		{name: "pages of the same two objects without end", match: lists,
			answer: pagesOf(newToken, 2), pages: true, first: true, most: 2 * leastRequests},
		{name: "a list of 30,000 empty objects", match: lists,
			answer: emptyItems(30_000), pages: true,
			first: true, quiet: true},
		{name: "gzip of 16 MB in the place of two answers", match: twice, answer: gzipBomb(16 << 20),
			first: true, quiet: true},
		{name: "watches refused with 414", most: asClientGo, match: watches,
			answer: proxy(http.StatusRequestURITooLong)},
		{name: "watches refused with 431", most: asClientGo, match: watches,
			answer: proxy(http.StatusRequestHeaderFieldsTooLarge)},
		{name: "watches refused with 500", most: asClientGo, match: watches,
			answer: statusAnswer(500, 0, "no")},
		{name: "watches refused with 504", most: asClientGo, match: watches,
			answer: statusAnswer(504, 0, "Too large resource version")},
		{name: "a version of 2^64-1", most: asClientGo, match: watches,
			answer: bookmark("18446744073709551615")},
		{name: "a version of 20,000 digits", most: asClientGo, match: watches,
			answer: bookmark(strings.Repeat("9", 20_000))},
		{name: "bookmarks that go back", most: asClientGo, match: watches, answer: bookmark("1")},
		{name: "unknown events", most: asClientGo, match: watches,
			answer: frames(`{"type":"STRANGE","object":{}}`)},
		{name: "noise in the place of events", match: watches,
			faults: []apisim.Fault{apisim.Garble(apisim.EachFrame)}},
		{name: "watches that end at once", most: asClientGo, match: watches, answer: frames()},
		{name: "a frame of 4 GB announced", most: asClientGo, match: watches, answer: hugeFrame()},
		{name: "objects of another type", most: asClientGo, match: watches,
			answer: frames(strangeFrame("Pod", ""))},
		{name: "redirects to another host", most: 500, match: all,
			answer: redirectAway(), first: true},
		{name: "redirects in a circle", most: 500, match: all, answer: redirectHome(), first: true},
		{name: "ERROR events of all codes", most: asClientGo, match: watches,
			answer: inTurn(errorEvents()...)},
		{name: "bookmarks of no number", most: asClientGo, match: watches,
			answer: inTurn(bookmark("x"), bookmark("007"), bookmark("-1"), bookmark("1e9"))},
		{name: "a watch that replays", match: watches,
			faults: []apisim.Fault{apisim.Duplicate(apisim.EachFrame), apisim.CutAfter(3)}, quiet: true},
		{name: "lists without a version", match: lists, answer: page("", "", itemOf("object-0", "1")),
			pages: true, first: true, quiet: true},
		{name: "pages whose versions go up and down", match: lists,
			answer: inTurn(page("1", "t1", itemOf("object-0", "1")),
				page("2", "t2", itemOf("object-1", "2")),
				page("1", "", itemOf("object-2", "1"))),
			pages: true, first: true, quiet: true},
		{name: "lists whose versions go up and down", match: lists,
			answer: inTurn(page("1", "", itemOf("object-0", "1")), page("2", "", itemOf("object-0", "1")),
				page("1", "", itemOf("object-0", "1"))), pages: true, first: true, quiet: true},
		{name: "a streamed list without an end", match: watches,
			answer: drip(strings.Repeat(frameOf("ADDED", "a", "3")+"\n", 10), time.Second),
			first:  true, most: 2 * leastRequests, noList: true, quiet: true},
		{name: "a streamed list that ends twice", most: asClientGo, match: watches,
			answer: frames(frameOf("ADDED", "a", "3"), initialEnd, initialEnd),
			noList: true, credible: true},
		// Each of a list's seven pages is refused as often as not, and the backoff begins anew with
		// each that comes.
		{name: "two servers, one of which refuses", match: all,
			faults: []apisim.Fault{apisim.Refuse(500, 0)}, half: true, quiet: true,
			most: 2 * leastRequests},
		{name: "two servers, one of which lags", match: all, faults: []apisim.Fault{apisim.Lag()},
			half: true, quiet: true},
		{name: "a list of a byte each ten seconds", match: lists, answer: drip(" ", 10*time.Second),
			pages: true, first: true},
		{name: "a watch of a byte each ten seconds", match: watches,
			answer: drip(" ", 10*time.Second),
			noList: true, quiet: true},
		{name: "headers of 900 KB", match: all, answer: headers(900 << 10), first: true},
		{name: "headers of 2 MB", match: all, answer: headers(2 << 20), first: true},
		{name: "an object whose labels are no map", match: watches,
			answer: frames(strangeFrame("ConfigMap", `,"labels":5`)), noList: true, most: 2 * leastRequests},
		{name: "a login page", match: all,
			answer: answerAs("text/html", 200, "<html>log in first</html>")},
		{name: "an event ahead, then one behind, once", match: once,
			answer: frames(frameOf("MODIFIED", "object-0", far), frameOf("MODIFIED", "object-1", "3")),
			noList: true, quiet: true},
		{name: "a delete ahead, then an event behind, once", match: once,
			answer: frames(frameOf("DELETED", "object-0", far), frameOf("MODIFIED", "object-1", "3")),
			noList: true, quiet: true},
		{name: "ends of lists of no number, and others of watches", match: watches,
			answer: inTurn(frames(endOfList("x")), frames(endOfList("y"))),
			noList: true, most: 2 * leastRequests},
		{name: "ends of lists, near and far", match: watches,
			answer: inTurn(frames(endOfList("1")), frames(endOfList(far))),
			pages:  true, noList: true, most: 2 * leastRequests},
	}
}
