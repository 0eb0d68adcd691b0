package tidings_test

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// faultsOfServers are those of the server as a whole.
func faultsOfServers() []faultRow {
	optional := &tidings.Selection{Namespace: "default", Optional: true}
	return []faultRow{
		{
			// A watch that broke is resumed, not listed.
			name: "CutConnections", covers: "CutConnections", test: cutConnections,
		},
		{
			// Health counts the failures, says the last one and when the next attempt is.
			name: "SetAvailable for ten minutes", covers: "SetAvailable", test: unavailable,
		},
		{
			// Each failure in a row doubles the wait.
			name: "SetAvailable for a fleet", covers: "SetAvailable", existing: "TestP18_FleetIsPolite/away_for_a_minute,_history_kept",
		},
		{
			// The waits have jitter.
			name: "Restart for a fleet", covers: "Restart", existing: "TestP18_FleetIsPolite/restart,_history_kept",
		},
		{
			// Handlers receive the deletes of objects that are gone after the restart.
			name: "Restart without history", covers: "Restart", test: restarted,
		},
		{
			// A watch whose version is gone leads to a list.
			// Objects that the list finds unchanged are not updates.
			// Deletes come before changes.
			name: "Compact", covers: "Compact", options: paged, test: compacted,
		},
		{
			// A server that has refused streamed lists is not asked for one again.
			name: "RefuseStreamedLists", covers: "RefuseStreamedLists", test: refusedStreamedLists,
		},
		{
			// An optional resource is taken for empty when it is surely missing.
			// Two moments are not added up.
			name: "RemoveResource for a moment", covers: "RemoveResource RestoreResource", selection: optional, test: removedForAMoment,
		},
		{
			// An optional resource that is surely missing is empty.
			name: "RemoveResource for good", covers: "RemoveResource", selection: optional, test: removedForGood,
		},
		{
			// A resource that was needed stays as it was until it is back.
			// Handlers receive the deletes of objects that are gone when it is back.
			name: "RemoveResource and RestoreResource", covers: "RemoveResource RestoreResource", test: removedAndRestored,
		},
		{
			// After ten seconds without contact the version of the server is looked at.
			name: "Rewind of a server that is out of reach", covers: "SetAvailable Snapshot Rewind", test: restoredOutOfReach,
		},
		{
			// Silence leads to a look at the server's version.
			// An older version leads to a list.
			// That list begins a new history.
			// What is cached is not taken for what is listed.
			name: "Rewind", covers: "Snapshot Rewind", existing: "TestP16_RestoredBackupIsFoundWithinMinutes",
		},
	}
}

// cutConnections breaks all connections, again and again.
func cutConnections(w *world) {
	l := w.has("a", "b")
	for range 10 {
		w.server.CutConnections()
		w.update("a", "2")
		w.remove("b")
		w.create("b", "2")
		w.after(time.Second)
	}
	w.settle()
	l.agrees()
	l.lists(1)
	if _, _, deletes := l.told(); len(deletes) != 10 {
		w.Errorf("told of %d deletes, want 10", len(deletes))
	}
}

// unavailable has the server out of reach while everything changes.
func unavailable(w *world) {
	l := w.has("a", "b")
	w.server.SetAvailable(false)
	w.update("a", "2")
	w.remove("b")
	w.after(10 * time.Minute)
	w.waits(tidings.Backoff, "is the API server reachable?")
	w.server.SetAvailable(true)
	w.settle()
	l.agrees()
	l.lists(1)
}

// restarted has the server come back with another state and without its history.
func restarted(w *world) {
	l := w.has("a", "b", "c")
	w.server.Restart(apisim.RestartOptions{Down: 10 * time.Second})
	w.update("a", "2")
	w.remove("b")
	w.create("d", "1")
	w.server.Compact()
	w.settle()
	l.agrees()
	if adds, updates, deletes := l.told(); adds != 1 || updates != 1 || !slices.Equal(deletes, []string{"default/b"}) {
		w.Errorf("told of %d adds, %d updates and the deletes of %v", adds, updates, deletes)
	}
}

// compacted forgets what happened while the server was away.
func compacted(w *world) {
	for _, name := range []string{"a", "b", "c"} {
		w.create(name, "1")
	}
	var told record
	w.probe.handle(told.handle, tidings.HandlerOptions{})
	l := w.follow()
	w.start()
	told.take()
	w.server.SetAvailable(false)
	w.update("a", "2")
	w.remove("b")
	w.create("d", "1")
	w.server.Compact()
	w.server.SetAvailable(true)
	w.settle()
	l.agrees()
	l.lists(2)
	expect(w, told.texts(), "Deleted default/b tombstone 1", "Updated default/a 1→2", "Added default/d 1")
}

// refusedStreamedLists has the server refuse streamed lists, when some were streamed.
func refusedStreamedLists(w *world) {
	l := w.has("a", "b")
	w.server.RefuseStreamedLists(true)
	for range 5 {
		w.server.SetAvailable(false)
		w.update("a", "2")
		w.remove("b")
		w.create("b", "1")
		w.server.Compact()
		w.server.SetAvailable(true)
		w.settle()
		l.agrees()
	}
	refused := 0
	for _, r := range w.server.Requests() {
		if r.Query.Get("sendInitialEvents") == "true" && r.Status >= 400 {
			refused++
		}
	}
	if refused != 1 {
		w.Errorf("%d streamed lists were refused, want 1", refused)
	}
}

// removedForAMoment has the server not know the resource for 40 seconds, twice.
func removedForAMoment(w *world) {
	l := w.has("a", "b")
	for range 2 {
		w.server.RemoveResource(configMaps)
		w.after(40 * time.Second)
		if _, _, deletes := l.told(); len(deletes) > 0 {
			w.Errorf("told of the deletes of %v", deletes)
		}
		w.waits(tidings.NoSuchResource, "CustomResourceDefinition")
		w.server.RestoreResource(configMaps)
		w.create("a", "2")
		w.create("b", "2")
		w.settle()
		l.agrees()
		l.told()
	}
}

// removedForGood has the server not know an optional resource any more.
func removedForGood(w *world) {
	l := w.has("a", "b")
	w.server.RemoveResource(configMaps)
	w.after(3 * time.Minute)
	if _, _, deletes := l.told(); !slices.Equal(deletes, []string{"default/a", "default/b"}) {
		w.Errorf("told of the deletes of %v", deletes)
	}
	if h := w.probe.informer().Health(); h.State != tidings.NoSuchResource || h.Objects != 0 {
		w.Errorf("health is %+v", h)
	}
}

// removedAndRestored has the resource come back after ten minutes, with other objects.
func removedAndRestored(w *world) {
	l := w.has("a", "b")
	w.server.RemoveResource(configMaps)
	w.after(10 * time.Minute)
	if _, _, deletes := l.told(); len(deletes) > 0 {
		w.Errorf("told of the deletes of %v", deletes)
	}
	w.waits(tidings.NoSuchResource, "CustomResourceDefinition")
	w.server.RestoreResource(configMaps)
	w.create("b", "2")
	synctest.Wait()
	w.settle()
	l.agrees()
	if _, _, deletes := l.told(); !slices.Equal(deletes, []string{"default/a"}) {
		w.Errorf("told of the deletes of %v", deletes)
	}
}

// restoredOutOfReach restores an older state while the server cannot be reached: the
// watch that is resumed then waits for a version that is far away.
func restoredOutOfReach(w *world) {
	l := w.has("a", "b")
	backup := w.server.Snapshot()
	for range 20 {
		w.create("c", "1")
		w.remove("c")
	}
	w.remove("b")
	synctest.Wait()
	w.server.SetAvailable(false)
	w.after(time.Minute)
	w.server.Rewind(backup)
	w.server.SetAvailable(true)
	w.after(time.Minute)
	l.agrees()
	if got := w.probe.get("default/b"); got == "" {
		w.Error("the cache does not hold what the backup has")
	}
}
