package simulation

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// cut breaks all connections.
func (w *world) cut() {
	w.note("cut the connections")
	w.met("CutConnections", 1)
	w.server.CutConnections()
}

// persist adds a fault of the server, which is active until it is lifted.
func (w *world) persist(name, how string, lift func()) {
	w.note("%s %s", name, how)
	w.met(name, 1)
	w.active = append(w.active, &activeFault{name: name, lift: lift})
}

// outage disturbs the server as a whole, or one of several.
func (w *world) outage() {
	if len(w.instances) > 0 && w.random.IntN(3) > 0 {
		w.disturbInstance()
		return
	}
	switch n := w.random.IntN(8); n {
	case 0, 1:
		w.cut()
	case 2:
		o := apisim.RestartOptions{KeepHistory: w.random.IntN(2) == 0, Down: w.between(0, 300)}
		w.note("restart with %+v", o)
		w.met(fmt.Sprint("Restart, history kept: ", o.KeepHistory), 1)
		w.server.Restart(o)
	case 3:
		w.note("compact")
		w.met("Compact", 1)
		w.server.Compact()
		if w.random.IntN(2) == 0 {
			w.cut()
		}
	case 4:
		if !w.isActive("SetAvailable") {
			w.server.SetAvailable(false)
			w.persist("SetAvailable", "false", func() { w.server.SetAvailable(true) })
		}
	case 5:
		if !w.isActive("RemoveResource") {
			w.writeLog.addGaps(widgets)
			w.server.RemoveResource(widgets)
			w.persist("RemoveResource", "widgets", func() { w.server.RestoreResource(widgets) })
		}
	case 6:
		if !w.isActive("RefuseStreamedLists") {
			w.server.RefuseStreamedLists(true)
			w.persist("RefuseStreamedLists", "true", func() { w.server.RefuseStreamedLists(false) })
			if w.random.IntN(2) == 0 {
				w.server.Compact()
				w.cut()
			}
		}
	case 7:
		if !w.isActive("SetUsers") {
			w.forbid()
		}
	}
}

// everything has the rights of the informers on a good day.
var everything = []apisim.Rule{{Verbs: []string{"*"}, Resources: []string{"*"}}}

func (w *world) users(users ...apisim.User) {
	if err := w.server.SetUsers(users...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) allow() { w.users(apisim.User{Name: "informers", Token: token, Allow: everything}) }

// forbid takes rights away, all or some.
func (w *world) forbid() {
	which := []string{
		"nobody is known", "nothing is allowed", "lists only", "watches only",
		"two namespaces only", "widgets only",
	}[w.random.IntN(6)]
	u := apisim.User{Name: "informers", Token: token}
	switch which {
	case "nobody is known":
		u = apisim.User{Name: "another", Token: "another token", Allow: everything}
	case "lists only":
		u.Allow = []apisim.Rule{{Verbs: []string{"list"}, Resources: []string{"*"}}}
	case "watches only":
		u.Allow = []apisim.Rule{{Verbs: []string{"watch"}, Resources: []string{"*"}}}
	case "two namespaces only":
		u.Allow = slices.Clone(everything)
		u.Allow[0].Namespaces = []string{"b", "c"}
	case "widgets only":
		u.Allow = []apisim.Rule{{Verbs: []string{"*"}, Resources: []string{"widgets.example.com"}}}
	}
	w.users(u)
	w.persist("SetUsers", which, w.allow)
	if w.random.IntN(3) > 0 {
		w.cut()
	}
}

// special makes an outage that must not coincide with other faults.
func (w *world) special() {
	w.liftAll()
	switch {
	case w.backup == nil:
		w.note("back up")
		w.backup = w.server.Snapshot()
	case w.random.IntN(2) == 0:
		w.reorder()
	default:
		w.rewind()
	}
}

// reorder exchanges events. A connection that breaks between two that are exchanged loses
// the first, which no client could notice, so nothing else happens meanwhile.
func (w *world) reorder() {
	i := w.server.Inject(apisim.Match{Verb: "watch"}, apisim.Reorder(apisim.EachFrame))
	w.note("inject Reorder")
	w.cut()
	time.Sleep(5 * time.Minute)
	for range 1 + w.random.IntN(20) {
		w.write()
		synctest.Wait()
	}
	i.Lift()
	w.met("Reorder", i.Met())
	w.cut()
	w.note("lift Reorder")
}

// rewind restores the backup: versions go back. Nobody tells the informers: those whose
// watch was at a version that is gone find out by themselves, before the audit.
func (w *world) rewind() {
	w.settle()
	for _, s := range w.subjects {
		for _, h := range s.checkers {
			h.Rewind(true)
		}
	}
	w.note("rewind")
	w.met("Rewind", 1)
	w.writeLog.addGaps(configMaps, widgets)
	w.server.Rewind(w.backup)
	w.audit(false)
	w.backup = w.server.Snapshot()
}
