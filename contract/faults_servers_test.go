package contract_test

import (
	"fmt"
	"net/http"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// faultsOfServers are those of the server as a whole.
func faultsOfServers() []faultRow {
	optional := &tidings.Selection{Namespace: "default", Optional: true}
	withoutManaged := &tidings.Selection{
		Namespace: "default", Drop: []string{"metadata.managedFields"},
	}
	return []faultRow{
		// A watch that broke is resumed, not listed.
		{name: "CutConnections", covers: "CutConnections", test: cutConnections},
		// Health counts the failures, and has the last one and the time of the next attempt.
		{name: "SetAvailable for ten minutes", covers: "SetAvailable", test: unavailable},
		// Each failure in a row doubles the wait. The waits have jitter.
		{name: "SetAvailable and Restart for a fleet", covers: "SetAvailable Restart",
			elsewhere: TestP18_FleetIsPolite},
		// A watch whose version is gone leads to a list.
		// Objects that the list finds unchanged are not updates.
		{name: "Compact", covers: "Compact", options: paged, test: compacted},
		// A server that has refused streamed lists is not asked for one again.
		{name: "RefuseStreamedLists", covers: "RefuseStreamedLists", test: refusedStreamedLists},
		// A request with the parameter drop that is answered with 406 is made again without it, and
		// the client does not send the parameter again.
		{name: "RefuseMediaTypeParameters", covers: "RefuseMediaTypeParameters",
			selection: withoutManaged, test: refusedParameters},
		{name: "RefuseMediaTypeParameters of lists in pages", covers: "RefuseMediaTypeParameters",
			options: paged, selection: withoutManaged, test: refusedParameters},
		{name: "RefuseMediaTypeParameters of a watch", covers: "RefuseMediaTypeParameters CutConnections",
			selection: withoutManaged, test: refusedParametersOfAWatch},
		// An optional resource is taken for empty when it is surely missing.
		// Two moments are not added up.
		{name: "RemoveResource for a moment", covers: "RemoveResource RestoreResource",
			selection: optional, test: removedForAMoment},
		// An optional resource that is surely missing is empty.
		{name: "RemoveResource for good", covers: "RemoveResource", selection: optional,
			test: removedForGood},
		// A resource that was needed stays as it was until it is back.
		// Handlers receive the deletes of objects that are gone when it is back.
		{name: "RemoveResource and RestoreResource", covers: "RemoveResource RestoreResource",
			test: removedAndRestored},
	}
}

// cutConnections breaks all connections, again and again.
func cutConnections(w *world) {
	l := w.has("a", "b")
	l.Take()
	var want []string
	for range 10 {
		w.server.CutConnections()
		w.remove("b")
		w.create("b", "1")
		w.after(time.Second)
		want = append(want, "Deleted default/b 1", "Added default/b 1")
	}
	w.settle()
	l.agrees()
	l.lists(1)
	l.receives(want...)
}

// unavailable changes everything while the server is out of reach.
func unavailable(w *world) {
	l := w.has("a", "b")
	w.server.SetAvailable(false)
	w.update("a", "2")
	w.remove("b")
	w.after(10 * time.Minute)
	w.waits(tidings.StateBackoff, "is the API server reachable?")
	w.server.SetAvailable(true)
	w.settle()
	l.agrees()
	l.lists(1)
}

// away makes the server unavailable while f changes it, and makes it forget that.
func (w *world) away(f func()) {
	w.server.SetAvailable(false)
	f()
	w.server.Compact()
	w.server.SetAvailable(true)
}

// compacted forgets the events of the time when the server was away.
func compacted(w *world) {
	l := w.has("a", "b", "c")
	l.Take()
	w.away(func() {
		w.update("a", "2")
		w.remove("b")
		w.create("d", "1")
	})
	w.settle()
	l.agrees()
	l.lists(2)
	l.receives("Deleted default/b tombstone 1", "Updated default/a 1→2", "Added default/d 1")
}

// changesWhileAway makes the informer list five times, each time after changes.
func changesWhileAway(w *world, l *ledger) {
	for range 5 {
		w.away(func() {
			w.update("a", "2")
			w.remove("b")
			w.create("b", "1")
		})
		w.settle()
		l.agrees()
	}
}

// refusedStreamedLists refuses streamed lists after some were streamed.
func refusedStreamedLists(w *world) {
	l := w.has("a", "b")
	w.server.RefuseStreamedLists(true)
	changesWhileAway(w, l)
	if _, refused := w.streamedLists(); refused != 1 {
		w.Errorf("%d streamed lists were refused, want 1", refused)
	}
}

// refusedParameters refuses the parameters of media types from the first list on.
func refusedParameters(w *world) {
	w.server.RefuseMediaTypeParameters(true)
	l := w.has("a", "b")
	changesWhileAway(w, l)
	w.isRefusedParametersOnce()
}

// refusedParametersOfAWatch refuses them when the list is over.
func refusedParametersOfAWatch(w *world) {
	l := w.has("a", "b")
	w.server.RefuseMediaTypeParameters(true)
	for range 5 {
		w.server.CutConnections()
		w.update("a", "2")
		w.remove("b")
		w.create("b", "1")
		w.settle()
		l.agrees()
	}
	l.lists(1)
	w.isRefusedParametersOnce()
}

// isRefusedParametersOnce checks that one request was answered with 406, and that it is no failure of
// the informer.
func (w *world) isRefusedParametersOnce() {
	w.Helper()
	refused := 0
	for _, r := range w.server.Requests() {
		if r.Status == http.StatusNotAcceptable {
			refused++
		}
	}
	if refused != 1 {
		w.Errorf("%d requests were answered with 406, want 1", refused)
	}
	if err := w.health().LastError; apierrors.IsNotAcceptable(err) {
		w.Errorf("the last error is %v", err)
	}
}

// removedForAMoment removes the resource for 40 seconds, twice.
func removedForAMoment(w *world) {
	l := w.has("a", "b")
	for n := range 2 {
		l.Take()
		w.server.RemoveResource(configMaps)
		w.after(40 * time.Second)
		l.receives()
		w.waits(tidings.StateNoSuchResource, "CustomResourceDefinition")
		w.server.RestoreResource(configMaps)
		w.create("a", fmt.Sprint(n))
		w.create("b", fmt.Sprint(n))
		w.settle()
		l.agrees()
	}
}

// removedForGood removes an optional resource.
func removedForGood(w *world) {
	l := w.has("a", "b")
	l.Take()
	w.server.RemoveResource(configMaps)
	w.after(3 * time.Minute)
	l.receives("Deleted default/a tombstone 1", "Deleted default/b tombstone 1")
	if h := w.health(); h.State != tidings.StateNoSuchResource || h.Objects != 0 {
		w.Errorf("health is %+v", h)
	}
}

// removedAndRestored restores the resource after ten minutes, with other objects.
func removedAndRestored(w *world) {
	l := w.has("a", "b")
	l.Take()
	w.server.RemoveResource(configMaps)
	w.after(10 * time.Minute)
	l.receives()
	w.waits(tidings.StateNoSuchResource, "CustomResourceDefinition")
	w.server.RestoreResource(configMaps)
	w.create("b", "2")
	w.settle()
	l.agrees()
	l.receives("Deleted default/a tombstone 1", "Updated default/b 1→2")
}

// faultsOfRewinds restore an older state. The watch that is resumed then waits for a version
// that is far away.
func faultsOfRewinds() []faultRow {
	row := func(name, covers string, test func(w *world, restore func())) faultRow {
		return faultRow{name: name, covers: covers + " Snapshot Rewind", test: func(w *world) {
			rewinds(w, test)
		}}
	}
	rows := []faultRow{
		// After ten seconds without contact the version of the server is looked at.
		row("Rewind of a server that is out of reach", "SetAvailable",
			func(w *world, restore func()) {
				w.server.SetAvailable(false)
				w.after(time.Minute)
				restore()
				w.server.SetAvailable(true)
				w.after(time.Minute)
			}),
		row("Rewind behind connections that drop", "Drop", func(w *world, restore func()) {
			drops := w.inject(apisim.Match{}, apisim.Drop())
			restore()
			w.after(time.Minute)
			drops.Lift()
			w.after(time.Minute)
		}),
		// The outage began with the last contact, although the connection was open.
		row("Rewind under a connection that carries nothing", "CutConnections",
			func(w *world, restore func()) {
				w.after(30 * time.Second)
				restore()
				w.server.CutConnections()
				w.after(10 * time.Second)
			}),
	}
	// The watch that follows the restart lasts, and brings nothing. When it is cut, the server has
	// passed the version that was reached.
	passed := row("Rewind within ten seconds, and versions that grow beyond", "CutConnections",
		func(w *world, restore func()) {
			restore()
			w.haveNamespaces("elsewhere")
			w.after(5 * time.Second)
			for n := range 60 {
				w.createIn("elsewhere", fmt.Sprint("x", n), "1")
			}
			w.server.CutConnections()
			w.after(11 * time.Minute)
		})
	rows = append(rows, passed)
	// Silence leads to a look at the server's version, which leads to a list. That list begins
	// a new history: the cache takes all of it.
	for form, o := range streamedAndPaged {
		silent := row("Rewind within a moment, "+form, "", func(w *world, restore func()) {
			w.server.SetAvailable(false)
			restore()
			w.server.SetAvailable(true)
			w.after(11 * time.Minute)
		})
		silent.options = o
		rows = append(rows, silent)
	}
	return rows
}

func rewinds(w *world, test func(w *world, restore func())) {
	l := w.has("kept", "changed", "deleted")
	backup := w.server.Snapshot()
	w.update("changed", "2")
	w.remove("deleted")
	for range 20 {
		w.create("lost", "1")
		w.remove("lost")
	}
	w.create("lost", "1")
	synctest.Wait()
	l.agrees()
	l.Take()
	l.Rewind(true)
	test(w, func() {
		w.server.Rewind(backup)
		w.create("new", "1")
	})
	l.agrees()
	l.receives("Deleted default/lost tombstone 1", "Updated default/changed 2→1",
		"Added default/deleted 1", "Updated default/kept 1→1", "Added default/new 1")
	// The new history is followed, and waited for, as the old one was.
	w.update("kept", "2")
	if took := w.waitFor(w.versions["kept"]); took != 0 {
		w.Errorf("a write to the restored server took %v", took)
	}
	synctest.Wait()
	l.agrees()
}
