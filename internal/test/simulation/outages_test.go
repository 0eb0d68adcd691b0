package simulation

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	switch n := w.random.IntN(9); n {
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
			w.persist("RemoveResource", "widgets", w.defineAgain)
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
	case 8:
		if !w.isActive("RefuseMediaTypeParameters") {
			w.server.RefuseMediaTypeParameters(true)
			w.persist("RefuseMediaTypeParameters", "true", func() { w.server.RefuseMediaTypeParameters(false) })
			w.cut()
		}
	}
}

// defineAgain brings back the widgets, in half of the cases with the other scope.
func (w *world) defineAgain() {
	if w.random.IntN(2) == 0 {
		w.server.RestoreResource(widgets)
		return
	}
	w.clusterScoped = !w.clusterScoped
	w.touch() // the definition is an object too: its creation has a version
	w.define()
	w.met("definition with the other scope", 1)
}

// define defines the widgets.
func (w *world) define() {
	w.note("widgets are of the cluster: %v", w.clusterScoped)
	if err := w.server.Register(apisim.Resource{
		Group: widgets.Group, Version: widgets.Version, Name: widgets.Resource,
		Kind: "Widget", Namespaced: !w.clusterScoped,
	}); err != nil {
		w.Fatal(err)
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
		"some namespaces only", "widgets only",
	}[w.random.IntN(6)]
	u := apisim.User{Name: "informers", Token: token}
	switch which {
	case "nobody is known":
		u = apisim.User{Name: "another", Token: "another token", Allow: everything}
	case "lists only":
		u.Allow = []apisim.Rule{{Verbs: []string{"list"}, Resources: []string{"*"}}}
	case "watches only":
		u.Allow = []apisim.Rule{{Verbs: []string{"watch"}, Resources: []string{"*"}}}
	case "some namespaces only":
		first := w.random.IntN(len(namespaces))
		u.Allow = slices.Clone(everything)
		u.Allow[0].Namespaces = namespaces[first:min(len(namespaces), first+1+w.random.IntN(2))]
		which = fmt.Sprint(u.Allow[0].Namespaces, " only")
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
		w.backUp()
	case w.random.IntN(3) == 0:
		w.reorder()
	case w.random.IntN(2) == 0:
		w.settle()
		w.rewind(w.backup, func() {})
	default:
		w.rewindSoon()
	}
}

// backup is a state to go back to.
type backup struct {
	*apisim.Snapshot
	clusterScoped bool // as in world
}

func (w *world) backUp() {
	w.note("back up")
	w.backup = &backup{w.server.Snapshot(), w.clusterScoped}
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

// rewindSoon goes back to a backup of the last minute, and lets the versions go on, perhaps beyond
// those that were reached. No client could notice some changes (see P16), which are not made: each
// object is written once since the backup, if at all, and nobody watches what is written at the
// versions that were reached before. Informers that do not compare versions notice a rewind by the
// version of the server alone: with one of them, it stays behind.
func (w *world) rewindSoon() {
	w.settle()
	w.backUp()
	written := map[string]bool{}
	for range 1 + w.random.IntN(8) {
		w.writeNew(written)
		if w.random.IntN(3) == 0 {
			time.Sleep(w.between(0, 5))
		}
	}
	if w.random.IntN(2) == 0 {
		synctest.Wait()
	}
	lost := len(written)
	w.rewind(w.backup, func() {
		if w.random.IntN(2) == 0 {
			time.Sleep(w.between(0, 20))
		}
		further := w.random.IntN(20)
		if w.comparesLess() { // such an informer finds a server by its lower version alone
			further = 0
		}
		for range min(further, lost) {
			w.writeUnwatched()
		}
		for range further - lost {
			w.writeNew(written)
			if w.random.IntN(4) == 0 {
				time.Sleep(w.between(0, 10))
			}
		}
		if w.random.IntN(2) == 0 {
			w.cut()
		}
	})
}

// comparesLess reports whether there is an informer that does not compare versions of objects.
func (w *world) comparesLess() bool {
	return slices.ContainsFunc(w.subjects, func(s *subject) bool { return s.fakes })
}

// writeNew makes a change of an object that is not among those written before.
func (w *world) writeNew(written map[string]bool) {
	resource, namespace, name := w.anyObject()
	if key := resource.Resource + "/" + namespace + "/" + name; !written[key] {
		written[key] = true
		w.writeTo(resource, namespace, name)
	}
}

// writeUnwatched takes a version for an object that no informer watches.
func (w *world) writeUnwatched() {
	_, err := w.server.Create(context.Background(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", GenerateName: "unwatched-"},
	})
	if err != nil {
		w.Fatal(err)
	}
}

// rewind restores a backup after an outage: versions go back. Nobody tells the informers: those
// whose watch was at a version that is gone find out by themselves, before the audit.
func (w *world) rewind(to *backup, after func()) {
	for _, s := range w.subjects {
		for _, h := range s.checkers {
			h.Rewind(true)
		}
	}
	down := []time.Duration{0, 0, w.between(0, 10), w.between(9, 30)}[w.random.IntN(4)]
	w.note("rewind after an outage of %v", down)
	w.met("Rewind", 1)
	w.writeLog.addGaps(configMaps, widgets, secretsOf)
	if down > 0 {
		w.server.SetAvailable(false)
		time.Sleep(down)
	}
	w.server.Rewind(to.Snapshot)
	w.clusterScoped = to.clusterScoped
	w.server.SetAvailable(true)
	after()
	w.audit(false)
	w.backUp()
}
