package contract_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// endOfWatch is how the watches after a cut end, in the place of their first events.
type endOfWatch struct {
	fault apisim.Fault
	// times is the number of watches that it ends; 0 means all from one version.
	times int
	// lists is the number of lists, the first included.
	lists uint64
	says  string // by health
}

func (e endOfWatch) test(w *world) {
	l := w.has("a", "b")
	m := apisim.Match{Verb: "watch", Times: e.times}
	if e.times == 0 {
		m = w.atVersion("b")
	}
	w.inject(m, aMoment, e.fault)
	w.server.CutConnections()
	w.after(5 * time.Second)
	w.update("a", "2")
	w.remove("b")
	w.after(5 * time.Second)
	w.create("b", "2")
	w.settle()
	l.agrees()
	l.lists(e.lists)
	l.says(e.says)
}

// answered is an answer of the status 200.
func answered(mediaType string, parts ...string) apisim.Fault {
	return apisim.Answer(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", mediaType)
		for _, part := range parts {
			io.WriteString(rw, part) //nolint:errcheck // the client may be gone
		}
	})
}

// faultsThatEndWatches are those of the bytes and the events of a watch that end it.
func faultsThatEndWatches() []faultRow {
	var small tidings.FactoryOptions
	small.Transport.MaxFrameBytes = 1 << 20
	const tooLarge = "larger than the limit of 1048576 (raise Transport.MaxFrameBytes"
	ends := func(fault apisim.Fault, times int, lists uint64, says string) func(*world) {
		return endOfWatch{fault, times, lists, says}.test
	}
	const inJSON, unknown = "application/json", `{"type":"SPLENDID","object":{}}`
	return []faultRow{
		// A watch that broke is resumed, not listed.
		{name: "CutBefore an event", covers: "CutBefore", test: ends(apisim.CutBefore(1), 3, 1, "")},
		{name: "CutLater", covers: "CutLater", test: ends(apisim.CutLater(time.Second), 3, 1, "")},
		// Half a frame is not decoded, and is no event that cannot be decoded.
		{name: "CutWithin an event", covers: "CutWithin", kinds: inProtobuf,
			test: ends(apisim.CutWithin(1), 2, 1, "")},
		// A stream that ends within a frame has not ended well.
		{name: "Truncate an event", covers: "Truncate",
			test: ends(apisim.Truncate(1), 1, 1, "the connection ended in the middle of a frame")},
		// Events that twice cannot be decoded from one version lead to a list.
		{name: "Garble the events after a version", covers: "Garble",
			test: ends(apisim.Garble(apisim.EachFrame), 0, 2, "malformed")},
		// An event that cannot be decoded once is asked for again.
		{name: "Garble an event", covers: "Garble", test: ends(apisim.Garble(1), 1, 1, "malformed")},
		{name: "Answer with an event of an unknown type", covers: "Answer",
			test: ends(answered(inJSON, unknown), 1, 1, "SPLENDID")},
		// A frame over the limit is refused, at once if it announces its length. In JSON an
		// inflated event has white space behind it, which is not kept.
		{name: "Inflate an event", covers: "Inflate", options: small, kinds: inProtobuf,
			test: ends(apisim.Inflate(1, 2<<20), 0, 2, tooLarge)},
		// A frame that does not announce its length is read up to the limit.
		{name: "Answer with an event without an end", covers: "Answer", options: small,
			test: ends(answered(inJSON, `{"type":"ADDED","object":{"x":"`,
				strings.Repeat("x", 2<<20)), 1, 1, "larger than the limit of 1048576")},
		// A watch whose version is gone leads to a list.
		{name: "Fail an event with 410", covers: "Fail",
			test: ends(apisim.Fail(1, http.StatusGone), 0, 2, "")},
		{name: "FailLater with 410", covers: "FailLater",
			test: ends(apisim.FailLater(time.Second, http.StatusGone), 1, 2, "")},
		// A status of an error is one, whatever the server has done.
		{name: "RefuseApplied of a watch", covers: "RefuseApplied",
			test: ends(apisim.RefuseApplied(http.StatusGatewayTimeout), 2, 1, "")},
		{name: "ApplyLater of a watch", covers: "ApplyLater",
			test: ends(apisim.ApplyLater(time.Second, http.StatusGatewayTimeout), 2, 1, "")},
		{name: "Refuse 410", covers: "Refuse", test: ends(apisim.Refuse(http.StatusGone, 0), 0, 2, "")},
		// An ERROR event ends the watch with the error that it carries.
		{name: "Fail an event with 500", covers: "Fail",
			test: ends(apisim.Fail(1, http.StatusInternalServerError), 1, 1, "a fault was injected")},
	}
}

// faultsOfWatches are the others of the events of a watch.
func faultsOfWatches() []faultRow {
	return []faultRow{
		// The watch is resumed from the last event, not from the list.
		{name: "CutAfter an event", covers: "CutAfter", test: cutAfter},
		{name: "Expire within a cut", covers: "Expire", test: expireCut},
		// A check that does not find an object, and deletes of one version that come one by one,
		// are of one history.
		{name: "Expire during an outage", covers: "Expire Stall", test: expireDuringOutage},
		// Those whose versions are gone together do not list together.
		{name: "Fail all watches of a fleet with 410", covers: "Fail",
			elsewhere: TestP18_FleetIsPolite},
		// A state that is cached says nothing new, and a delete comes once.
		{name: "Duplicate each event", covers: "Duplicate", test: duplicated},
		// The version of the cache does not go back.
		{name: "Reorder each event", covers: "Reorder", test: reordered},
		// Only a version that is older leads to a list.
		{name: "DropBookmarks for an hour", covers: "DropBookmarks",
			elsewhere: TestP16_QuietServerIsNotListedAgain},
		// A watch that has ceased to bring bookmarks is torn down.
		{name: "Stall after some bookmarks", covers: "Stall",
			elsewhere: TestP15_WatchThatFallsSilentIsResumed},
		// A watch ends with its own timeout.
		{name: "Stall from the beginning", covers: "Stall", test: func(w *world) {
			w.inject(firstWatch, apisim.Stall(4, 0)) // the objects, and the end of the list
			w.timeoutEnds(w.has("a", "b"))
		}},
		{name: "Delay of a watch", covers: "Delay", test: func(w *world) {
			w.inject(apisim.Match{Verb: "watch"}.Nth(2), apisim.Delay(24*time.Hour))
			l := w.has("a", "b")
			w.server.CutConnections()
			w.timeoutEnds(l)
		}},
	}
}

// timeoutEnds waits until the watch outlives its timeout.
func (w *world) timeoutEnds(l *ledger) {
	w.update("a", "2")
	w.remove("b")
	w.after(12 * time.Minute)
	l.agrees()
	l.lists(1)
}

// cutAfter breaks the connection when events were sent, and forgets them: only a watch
// from the last of them can be resumed.
func cutAfter(w *world) {
	l := w.has("a", "b")
	w.inject(firstWatch, apisim.CutAfter(2))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.remove("b")
	w.update("a", "2") // after a delete, it would be resumed from before that
	synctest.Wait()
	w.server.Compact()
	w.after(10 * time.Second)
	w.create("b", "2")
	w.settle()
	l.agrees()
	l.lists(1)
}

// expireCut breaks the connection between deletes of one version.
func expireCut(w *world) {
	l := w.has("a", "b", "c")
	w.inject(firstWatch, apisim.CutAfter(2))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.must(w.server.Expire(context.Background(), configMaps, "default", "a", "b", "c"))
	w.settle()
	l.agrees()
	l.lists(1)
}

// expireDuringOutage deletes objects at one version while the server is out of reach. The watch
// that follows brings the first delete, and the others later.
func expireDuringOutage(w *world) {
	l := w.has("a", "b", "c")
	l.Take()
	w.server.SetAvailable(false)
	w.must(w.server.Expire(context.Background(), configMaps, "default", "a", "b", "c"))
	w.after(time.Minute)
	w.inject(firstWatch, apisim.Stall(2, 5*time.Second))
	w.server.SetAvailable(true)
	w.settle()
	l.agrees()
	l.lists(1)
	l.receives("Deleted default/a 1", "Deleted default/b 1", "Deleted default/c 1")
}

// duplicated sends every event twice: adds, updates, deletes and bookmarks, and those of
// a streamed list.
func duplicated(w *world) {
	w.inject(apisim.Match{Verb: "watch"}, apisim.Duplicate(apisim.EachFrame))
	l := w.has("a", "b")
	w.update("a", "2")
	synctest.Wait()
	w.create("c", "1")
	synctest.Wait()
	w.remove("b")
	w.remove("c")
	w.create("c", "2")
	w.settle()
	l.agrees()
	l.receives("Added default/a initial 1", "Added default/b initial 1", "Updated default/a 1→2",
		"Added default/c 1", "Deleted default/b 1", "Deleted default/c 1", "Added default/c 2")
}

// reordered sends each event after the next one of another object, and a moment later, so
// that the two are not read together.
func reordered(w *world) {
	var versions []string
	l := w.has("a", "b")
	l.Act = func(follow.Event) {
		at, _ := w.probe.snapshot()()
		versions = append(versions, at)
	}
	w.inject(apisim.Match{Verb: "watch"}, apisim.Reorder(apisim.EachFrame),
		apisim.Stall(apisim.EachFrame, 10*time.Millisecond))
	w.server.CutConnections()
	w.after(10 * time.Second)
	for range 10 {
		w.update("a", "2")
		w.update("b", "2")
		w.after(time.Second)
		w.create("c", "1")
		w.update("a", "3")
		w.after(time.Second)
		w.remove("c")
		w.remove("b")
		w.create("b", "1")
		w.after(time.Second)
	}
	w.create("d", "1")
	w.settle()
	l.agrees()
	// Versions of apisim of one length order as text.
	if !slices.IsSortedFunc(versions, func(a, b string) int {
		return 2*(len(a)-len(b)) + strings.Compare(a, b)
	}) {
		w.Errorf("the version of the cache went back: %v", versions)
	}
	if n := strings.Count(strings.Join(l.Texts(), ""), "Deleted"); n != 20 {
		w.Errorf("%d deletes, want 20", n)
	}
}
