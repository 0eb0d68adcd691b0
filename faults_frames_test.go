package tidings_test

import (
	"context"
	"net/http"
	"slices"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// faultsOfFrames are those of the bytes of an answer.
func faultsOfFrames() []faultRow {
	small := tidings.FactoryOptions{Transport: tidings.Transport{MaxFrameBytes: 1 << 20}}
	smallPages := paged
	smallPages.Transport.MaxListBytes = 1 << 20
	return []faultRow{
		{
			// A watch that broke is resumed, not listed.
			name: "CutBefore an event", covers: "CutBefore", test: cutBefore,
		},
		{
			// The watch is resumed from the last event, not from the list.
			name: "CutAfter an event", covers: "CutAfter", test: cutAfter,
		},
		{name: "Expire within a cut", covers: "Expire", test: expireCut},
		{
			// Half a frame is not decoded.
			name: "CutWithin an event", covers: "CutWithin", test: cutWithin, kinds: inProtobuf,
		},
		{
			// A body that broke off is not decoded.
			name: "CutWithin a list", covers: "CutWithin", options: paged, test: cutWithinList,
		},
		{
			// A stream that ends within a frame has not ended well.
			name: "Truncate an event", covers: "Truncate", test: truncated,
		},
		{
			// Half a list in protobuf is no list.
			name: "Truncate a list", covers: "Truncate", options: paged, test: truncatedList, kinds: inProtobuf,
		},
		{
			// What cannot be decoded twice from one version is listed.
			name: "Garble the events after a version", covers: "Garble", test: garbled,
		},
		{
			// What cannot be decoded once is asked for again.
			name: "Garble an event", covers: "Garble", test: garbledOnce,
		},
		{
			// A list that cannot be decoded is no empty one.
			name: "Garble a list", covers: "Garble", options: paged, test: garbledList, kinds: inProtobuf,
		},
		{
			// A frame over the limit is refused, at once if it says how long it is.
			name: "Inflate an event", covers: "Inflate", options: small, test: inflated, kinds: inProtobuf,
		},
		{
			// A frame that does not say how long it is is read up to the limit.
			name: "Inflate an event in JSON", covers: "Inflate", existing: "TestP01_NoFaultOfAStreamLosesAChange/frame_over_the_limit",
		},
		{
			// A page over the limit is refused.
			name: "Inflate a list", covers: "Inflate", options: smallPages, test: inflatedList,
		},
	}
}

// cutBefore breaks the connection three times, each time when an event is to be sent.
func cutBefore(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch", Times: 3}, apisim.CutBefore(1))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.update("a", "2")
	w.remove("b")
	w.after(10 * time.Second)
	w.create("b", "2")
	w.settle()
	l.agrees()
	l.lists(1)
}

// cutAfter breaks the connection when events were sent, and forgets them: only a watch
// from the last of them can be resumed.
func cutAfter(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.CutAfter(2))
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
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.CutAfter(2))
	w.server.CutConnections()
	w.after(10 * time.Second)
	if err := w.server.Expire(context.Background(), configMaps, "default", "a", "b", "c"); err != nil {
		w.Fatal(err)
	}
	w.settle()
	l.agrees()
	l.lists(1)
}

// cutWithin sends half of the same event twice. That is no event that cannot be decoded.
func cutWithin(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch", Times: 2}, apisim.CutWithin(1))
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(1)
}

// cutWithinList breaks lists off.
func cutWithinList(w *world) {
	l := w.has("a", "b", "c")
	w.listedAgain(l, "the connection ended in the middle", apisim.CutWithin(1))
}

// truncated ends a watch in good order, but within an event.
func truncated(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Truncate(1))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(1)
	l.says("the connection ended in the middle of a frame")
}

// truncatedList has lists end in their middle as if they were complete.
func truncatedList(w *world) {
	l := w.has("a", "b", "c")
	w.listedAgain(l, "malformed", apisim.Truncate(1))
}

// garbled makes noise of all events after one version, however often they are asked for.
func garbled(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch", Query: map[string]string{"resourceVersion": w.versions["b"]}},
		apisim.Delay(10*time.Millisecond), apisim.Garble(apisim.EachFrame))
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(2)
	l.says("malformed")
}

// garbledOnce makes noise of one event, once.
func garbledOnce(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Garble(1))
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(1)
	l.says("malformed")
}

// garbledList makes noise of lists.
func garbledList(w *world) {
	l := w.has("a", "b", "c")
	w.listedAgain(l, "malformed", apisim.Garble(1))
}

// inflated makes an event larger than the limit, however often it is asked for. In JSON
// that would be white space after it, which is read and forgotten.
func inflated(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch", Query: map[string]string{"resourceVersion": w.versions["b"]}},
		apisim.Delay(10*time.Millisecond), apisim.Inflate(1, 2<<20))
	w.server.CutConnections()
	w.update("a", "2")
	w.remove("b")
	w.settle()
	l.agrees()
	l.lists(2)
	l.says("larger than the limit of 1048576 (raise Transport.MaxFrameBytes")
}

// inflatedList makes pages larger than the limit.
func inflatedList(w *world) {
	l := w.has("a", "b", "c")
	w.listedAgain(l, "larger than the limit", apisim.Inflate(1, 8<<20))
}

// faultsOfWatches are those of the events of a watch.
func faultsOfWatches() []faultRow {
	return []faultRow{
		{
			// A state that is cached says nothing new.
			// Nobody is told twice of a delete.
			name: "Duplicate each event", covers: "Duplicate", test: duplicated,
		},
		{
			// The version of the cache does not go back.
			name: "Reorder each event", covers: "Reorder", test: reordered,
		},
		{
			// A list that is streamed and falls silent is read in pages.
			// A server that does not end streamed lists is not asked for a third.
			name: "DropBookmarks of streamed lists", covers: "DropBookmarks", test: droppedEnds,
		},
		{
			// A list that is streamed in vain twice is read in pages.
			name: "CutWithin streamed lists", covers: "CutWithin", test: cutLists,
		},
		{
			// Only a version that is older leads to a list.
			name: "DropBookmarks for an hour", covers: "DropBookmarks", existing: "TestP16_QuietServerIsNotListedAgain",
		},
		{
			// A watch that has ceased to bring bookmarks is torn down.
			name: "Stall after some bookmarks", covers: "Stall", existing: "TestP15_WatchThatFallsSilentIsResumed",
		},
		{
			// A watch ends with its own timeout.
			name: "Stall from the beginning", covers: "Stall", existing: "TestP15_ConnectionThatIsDeadFromTheBeginning",
		},
		{
			// A streamed list that falls silent is ended.
			name: "Stall of a streamed list", covers: "Stall", test: stalledList,
		},
		{
			// A list that ceases to come is ended.
			name: "Stall of a list in pages", covers: "Stall", existing: "TestP15_ListThatFallsSilentIsEnded/stalls_in_the_middle",
		},
		{
			// Each byte of a list shows that the server is there.
			name: "Stall of a list, now and then", covers: "Stall", existing: "TestP15_SlowListsAreLeftAlone",
		},
		{
			// Lists obey the timeout of the rest.Config.
			name: "Stall of a list with a timeout", covers: "Stall", test: stalledPages,
		},
		{
			// A watch whose version is gone leads to a list.
			name: "Fail an event with 410", covers: "Fail", test: failedGone,
		},
		{
			// Those whose versions are gone together do not list together.
			name: "Fail all watches of a fleet with 410", covers: "Fail", existing: "TestP18_FleetIsPolite/all_watches_expire_at_once",
		},
		{
			// An ERROR event ends the watch with the error that it carries.
			name: "Fail an event with 500", covers: "Fail", test: failed,
		},
	}
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
	if adds, updates, deletes := l.told(); adds != 2 || updates != 1 || !slices.Equal(deletes, []string{"default/b", "default/c"}) {
		w.Errorf("told of %d adds, %d updates and the deletes of %v", adds, updates, deletes)
	}
}

// reordered sends each event after the next one of another object, and a moment later, so
// that the two are not read together.
func reordered(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch"}, apisim.Reorder(apisim.EachFrame), apisim.Stall(apisim.EachFrame, 10*time.Millisecond))
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
	if !slices.IsSortedFunc(l.versions, func(a, b string) int { return int(number(a)) - int(number(b)) }) {
		w.Errorf("the version of the cache went back: %v", l.versions)
	}
	if _, _, deletes := l.told(); len(deletes) != 20 {
		w.Errorf("told of %d deletes, want 20", len(deletes))
	}
}

// droppedEnds has no streamed list come to its end.
func droppedEnds(w *world) {
	w.create("a", "1")
	l := w.follow()
	w.inject(apisim.Match{}, apisim.DropBookmarks())
	if err := w.factory.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.after(3 * time.Minute)
	l.agrees()
	l.lists(2)
	for _, n := range []string{"2", "3", "4"} {
		w.server.SetAvailable(false)
		w.update("a", n)
		w.server.Compact()
		w.server.SetAvailable(true)
		w.after(3 * time.Minute)
		l.agrees()
	}
	if n := w.streamedLists(); n != 2 {
		w.Errorf("%d lists were streamed in vain, want 2", n)
	}
}

// streamedLists returns how many were asked for.
func (w *world) streamedLists() (n int) {
	for _, r := range w.server.Requests() {
		if r.Query.Get("sendInitialEvents") == "true" {
			n++
		}
	}
	return n
}

// cutLists has every streamed list break off.
func cutLists(w *world) {
	w.create("a", "1")
	l := w.follow()
	w.inject(apisim.Match{Verb: "watch", Query: map[string]string{"sendInitialEvents": ""}}, apisim.CutWithin(1))
	if err := w.factory.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.after(time.Minute)
	l.agrees()
	l.lists(3)
}

// stalledList has the first list begin and not go on.
func stalledList(w *world) {
	w.create("a", "1")
	w.create("b", "1")
	l := w.follow()
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Stall(2, 0))
	if err := w.factory.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.after(2*time.Minute - time.Second)
	if got := w.probe.state(); len(got) != 0 || w.probe.informer().HasSynced() {
		w.Errorf("the cache holds %v before the list is complete", got)
	}
	w.remove("b")
	w.after(2 * time.Second)
	l.agrees()
	l.lists(2)
}

// stalledPages has the first page not come to its end.
func stalledPages(w *world) {
	w.reconnect(paged, func(c *rest.Config) { c.Timeout = 30 * time.Second })
	w.inject(apisim.Match{Verb: "list"}.Nth(1), apisim.Stall(1, 0))
	l := w.has("a", "b", "c")
	l.agrees()
	l.lists(2)
}

// failedGone tells a watch that its version is gone, in the place of a delete.
func failedGone(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch", Query: map[string]string{"resourceVersion": w.versions["b"]}},
		apisim.Delay(10*time.Millisecond), apisim.Fail(1, http.StatusGone))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.remove("b")
	w.update("a", "2")
	w.settle()
	l.agrees()
	l.lists(2)
}

// failed tells a watch of an error of the server, in the place of a delete.
func failed(w *world) {
	l := w.has("a", "b")
	w.inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(1, http.StatusInternalServerError))
	w.server.CutConnections()
	w.after(10 * time.Second)
	w.remove("b")
	w.update("a", "2")
	w.settle()
	l.agrees()
	l.lists(1)
	l.says("a fault was injected")
}
