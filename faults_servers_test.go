package tidings_test

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/reflector"
)

// faultsOfServers are those of the server as a whole.
func faultsOfServers() []faultRow {
	optional := &tidings.Selection{Namespace: "default", Optional: true}
	return []faultRow{
		{
			name: "CutConnections", covers: "CutConnections", test: cutConnections,
			guards: []guard{{
				why:  "a watch that broke is resumed, not listed",
				file: "reflector/watch.go", function: "(*Reflector).ended",
				code: "default:\n\t\treturn r.retry(ctx, err, r.watch)", without: "default:\n\t\treturn r.retry(ctx, err, r.list())",
			}},
		},
		{
			name: "SetAvailable for ten minutes", covers: "SetAvailable", test: unavailable,
			guards: []guard{{
				why:  "health counts the failures, says the last one and when the next attempt is",
				file: "reflector/reflector.go", function: "(*Reflector).retry",
				code: "r.record.failed(err, time.Now().Add(r.wait))", without: "",
			}},
		},
		{
			name: "SetAvailable for a fleet", covers: "SetAvailable", existing: "TestP18_FleetIsPolite/away_for_a_minute,_history_kept",
			guards: []guard{{
				why:  "each failure in a row doubles the wait",
				file: "reflector/reflector.go", function: "(*Reflector).retry",
				code: "r.failures++", without: "r.failures = 1",
			}},
		},
		{
			name: "Restart for a fleet", covers: "Restart", existing: "TestP18_FleetIsPolite/restart,_history_kept",
			guards: []guard{{
				why:  "the waits have jitter",
				file: "reflector/backoff.go", function: "Backoff.delay",
				code: "if b.Jitter > 0 {", without: "if false {",
			}},
		},
		{
			name: "Restart without history", covers: "Restart", test: restarted,
			guards: []guard{{
				why:  "what was deleted meanwhile is told of",
				file: "delta/resolve.go", function: "(*resolver).replace",
				code: "r.miss(l, key, r.stateOf(object), initial)", without: "",
			}},
		},
		{
			name: "Compact", covers: "Compact", options: paged, test: compacted,
			guards: []guard{{
				why:  "a watch whose version is gone leads to a list",
				file: "reflector/list.go", function: "needsList",
				code: "source.IsExpired(err)", without: "false",
			}, {
				why:  "what the list finds unchanged is no update",
				file: "delta/resolve.go", function: "(*resolver).meet",
				code: "unchanged && !r.reportUnchanged", without: "false",
			}, {
				why:  "deletes come before changes",
				file: "delta/resolve.go", function: "(*resolver).replace",
				code: "r.deltas = append(r.deltas, r.others...)", without: "r.deltas = append(r.others, r.deltas...)",
			}},
		},
		{
			name: "RefuseStreamedLists", covers: "RefuseStreamedLists", test: refusedStreamedLists,
			guards: []guard{{
				why:  "a server that has refused streamed lists is not asked for one again",
				file: "reflector/list.go", function: "(*Reflector).streamList",
				code: "r.paged = true", without: "",
			}},
		},
		{
			name: "RemoveResource for a moment", covers: "RemoveResource RestoreResource", selection: optional, test: removedForAMoment,
			guards: []guard{{
				why:  "an optional resource is taken for empty when it is surely missing",
				file: "reflector/missing.go", function: "(*Reflector).missing",
				code: "now.Sub(r.missingSince) < surelyMissing", without: "false",
			}, {
				why:  "two moments are not added up",
				file: "reflector/reflector.go", function: "(*Reflector).heard",
				code: "r.missingSince = time.Time{}", without: "",
			}},
		},
		{
			name: "RemoveResource for good", covers: "RemoveResource", selection: optional, test: removedForGood,
			guards: []guard{{
				why:  "an optional resource that is surely missing is empty",
				file: "reflector/missing.go", function: "(*Reflector).missing",
				code: "!r.o.Optional", without: "true",
			}},
		},
		{
			name: "RemoveResource and RestoreResource", covers: "RemoveResource RestoreResource", test: removedAndRestored,
			guards: []guard{{
				why:  "a resource that was needed stays as it was until it is back",
				file: "reflector/missing.go", function: "(*Reflector).missing",
				code: "!r.o.Optional", without: "false",
			}, {
				why:  "what is gone when it is back is told of",
				file: "delta/resolve.go", function: "(*resolver).replace",
				code: "r.miss(l, key, r.stateOf(object), initial)", without: "",
			}},
		},
		{
			name: "Rewind of a server that is out of reach", covers: "SetAvailable Snapshot Rewind", test: restoredOutOfReach,
			guards: []guard{{
				why:  "after ten seconds without contact the version of the server is looked at",
				file: "reflector/silence.go", function: "(*Reflector).reached",
				code: "time.Since(r.contact) >= longOutage", without: "false",
			}},
		},
		{
			name: "Rewind", covers: "Snapshot Rewind", existing: "TestP16_RestoredBackupIsFoundWithinMinutes",
			guards: []guard{{
				why:  "silence leads to a look at the server's version",
				file: "reflector/silence.go", function: "(*Reflector).doubt",
				code: "r.doubtful = true", without: "",
			}, {
				why:  "an older version leads to a list",
				file: "reflector/silence.go", function: "(*Reflector).probe",
				code: "comparable && order < 0", without: "comparable && order < 0 && false",
			}, {
				why:  "that list begins a new history",
				file: "reflector/list.go", function: "(*Reflector).endList",
				code: "newHistory := consistent && (r.rewound || comparable && order < 0)", without: "newHistory := false; _, _ = order, comparable",
			}, {
				why:  "what is cached is not taken for what is listed",
				file: "reflector/list.go", function: "(*Reflector).stage",
				code: "&& !r.rewound", without: "",
			}},
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
	w.waits(reflector.BackingOff, "is the API server reachable?")
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
		w.waits(reflector.NoSuchResource, "CustomResourceDefinition")
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
	if h := w.probe.informer().Health(); h.State != reflector.NoSuchResource || h.Objects != 0 {
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
	w.waits(reflector.NoSuchResource, "CustomResourceDefinition")
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
