package rollout

import (
	"io"
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/apisim"
)

// fault is a fault in each step of the scenario.
type fault struct {
	name string
	// begin begins the fault, just before the user's change. It returns a function that ends
	// it later and returns the number of requests that it has met.
	begin func(w *world) (end func() (met int))
	// during is called just after the change, unless nil.
	during func(w *world)
	// loses reports whether the server loses objects, so that they are created again: then the
	// bounds do not hold, nor the count of created pods.
	loses bool
}

// duration is the time for which a fault lasts after the change.
const duration = 90 * time.Second

// TestLifeOfAReplicaSetUnderEachFault leads a replica set through the scenario, each step of
// it under the same fault. Each step has to end in the state that it ends in without.
func TestLifeOfAReplicaSetUnderEachFault(t *testing.T) {
	names := []string{"tidings"}
	if *full {
		names = append(names, "client-go")
	}
	for _, fault := range faults() {
		t.Run(fault.name, func(t *testing.T) {
			inWorlds(t, names, func(w *world) { w.suffer(fault) })
		})
	}
}

func (w *world) suffer(fault fault) {
	w.t.Helper()
	met := 0
	for _, step := range scenario() {
		if !fault.loses {
			w.bounds(step.limit, step.least)
		}
		end := fault.begin(w)
		step.change(w)
		if fault.during != nil {
			fault.during(w)
		}
		time.Sleep(duration)
		met += end()
		begun := time.Now()
		w.expect(step.want)
		if w.t.Failed() {
			w.t.Fatalf("in the step %q, %v after the fault had ended", step.name, time.Since(begun))
		}
	}
	if met == 0 {
		w.t.Error("the fault met no request")
	}
	if created, _ := w.count(); !fault.loses && created != podsOfScenario {
		w.t.Errorf("the controller created %d pods, want %d", created, podsOfScenario)
	}
}

// faults has a row, at least, for each fault that apisim knows.
func faults() []fault {
	all := append(refusals(), framed()...)
	all = append(all, ofRequests()...)
	return append(all, ofServer()...)
}

// on injects faults into requests, into half of the writes, and breaks the connections, so
// that informers make new ones that meet the faults. An answer takes some time: some
// informers ask again at once, and virtual time would stand still.
func on(match apisim.Match, faults ...apisim.Fault) func(w *world) func() int {
	if match.Verb != "watch" && match.Verb != "list" && match.Verb != "get" {
		match.Probability = 0.5
	}
	return func(w *world) func() int {
		injection := w.server.Inject(match, append([]apisim.Fault{apisim.Delay(100 * time.Millisecond)}, faults...)...)
		w.server.CutConnections()
		return func() int {
			injection.Lift()
			return injection.Met()
		}
	}
}

// thenCut breaks the connections at the end of faults that stay with the watches that
// met them.
func thenCut(begin func(w *world) func() int) func(w *world) func() int {
	return func(w *world) func() int {
		end := begin(w)
		return func() int {
			met := end()
			w.server.CutConnections()
			return met
		}
	}
}

// relisting makes informers list again and again, in pages, while something else goes
// wrong.
func relisting(begin func(w *world) func() int) func(w *world) func() int {
	return func(w *world) func() int {
		w.server.RefuseStreamedLists(true)
		expired := w.server.Inject(apisim.Match{Verb: "watch"}, apisim.Delay(100*time.Millisecond), apisim.Fail(0, 410))
		old := w.server.Inject(apisim.Match{Verb: "list", Query: map[string]string{"resourceVersion": ""}}, apisim.Refuse(410, 0))
		end := begin(w)
		return func() int {
			expired.Lift()
			old.Lift()
			w.server.RefuseStreamedLists(false)
			return end()
		}
	}
}

// always is a fault without requests of its own: it is done, and meets everyone.
func always(begin, end func(w *world)) func(w *world) func() int {
	return func(w *world) func() int {
		begin(w)
		return func() int {
			end(w)
			return 1
		}
	}
}

func nothing(*world) {}

// refusals are answers that are errors.
func refusals() []fault {
	var rows []fault
	for _, code := range []int{400, 401, 403, 404, 409, 410, 429, 500, 503, 504} {
		rows = append(rows, fault{name: "Refuse " + http.StatusText(code),
			begin: on(apisim.Match{Resource: "*"}, apisim.Refuse(code, 0))})
	}
	writes := func(verb string) fault {
		return fault{name: "Refuse each " + verb, begin: on(apisim.Match{Verb: verb}, apisim.Refuse(500, 0))}
	}
	for _, code := range []int{409, 500, 504} {
		rows = append(rows,
			fault{name: "RefuseApplied " + http.StatusText(code),
				begin: on(apisim.Match{Resource: "*"}, apisim.RefuseApplied(code))},
			fault{name: "ApplyLater " + http.StatusText(code),
				begin: on(apisim.Match{Resource: "*"}, apisim.ApplyLater(5*time.Second, code))})
	}
	return append(rows, writes("create"), writes("update"), writes("patch"), writes("delete"), writes("get"),
		fault{name: "Refuse with Retry-After", begin: on(apisim.Match{}, apisim.Refuse(429, 2*time.Second))},
		fault{name: "Refuse everything", begin: func(w *world) func() int {
			injection := w.server.Inject(apisim.Match{}, apisim.Refuse(503, 0))
			return func() int {
				injection.Lift()
				return injection.Met()
			}
		}})
}

// framed are faults of the frames of answers.
func framed() []fault {
	watches, lists, each := apisim.Match{Verb: "watch"}, apisim.Match{Verb: "list"}, apisim.Match{}
	return []fault{
		{name: "CutBefore the head", begin: on(each, apisim.CutBefore(0))},
		{name: "CutBefore an event", begin: on(watches, apisim.CutBefore(2))},
		{name: "CutWithin an answer", begin: on(each, apisim.CutWithin(1))},
		{name: "CutWithin a list", begin: relisting(on(lists, apisim.CutWithin(1)))},
		{name: "CutAfter an answer", begin: on(each, apisim.CutAfter(1))},
		{name: "CutAfter an event", begin: on(watches, apisim.CutAfter(1))},
		{name: "Truncate an answer", begin: on(each, apisim.Truncate(1))},
		{name: "Truncate a list", begin: relisting(on(lists, apisim.Truncate(1)))},
		{name: "Garble an answer", begin: on(each, apisim.Garble(1))},
		{name: "Garble an event", begin: on(watches, apisim.Garble(2))},
		{name: "Garble each event", begin: on(watches, apisim.Garble(apisim.EachFrame))},
		{name: "Inflate an answer", begin: on(each, apisim.Inflate(1, 4<<20))},
		{name: "Inflate a list", begin: relisting(on(lists, apisim.Inflate(1, 4<<20)))},
		{name: "Duplicate each event", begin: on(watches, apisim.Duplicate(apisim.EachFrame))},
		{name: "Reorder each event", begin: thenCut(on(watches, apisim.Reorder(apisim.EachFrame)))},
		{name: "Stall the answers for a while", begin: on(each, apisim.Stall(0, 20*time.Second))},
		{name: "Stall the watches", begin: on(watches, apisim.Stall(1, 0))},
		{name: "Stall the watches of pods", begin: on(apisim.Match{Verb: "watch", Resource: "pods"}, apisim.Stall(2, 0))},
		{name: "DropBookmarks", begin: thenCut(on(watches, apisim.DropBookmarks()))},
		{name: "Fail the watches with 410", begin: on(watches, apisim.Fail(0, 410))},
		{name: "Fail an event with 410", begin: on(watches, apisim.Fail(2, 410))},
		{name: "Fail an event with 500", begin: on(watches, apisim.Fail(2, 500))},
	}
}

// ofRequests are faults of whole requests.
func ofRequests() []fault {
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html>Please log in.</html>") //nolint:errcheck // the client may be gone
	}
	return []fault{
		{name: "Delay", begin: on(apisim.Match{}, apisim.Delay(3*time.Second))},
		{name: "Drop", begin: on(apisim.Match{}, apisim.Drop())},
		{name: "Answer with a page", begin: on(apisim.Match{}, apisim.Answer(page))},
		{name: "Call what cuts the connections", begin: func(w *world) func() int {
			return on(apisim.Match{Verb: "create"}, apisim.Call(func(*http.Request) { w.server.CutConnections() }))(w)
		}},
		{name: "Lag of the watches", begin: on(apisim.Match{Verb: "watch"}, apisim.Lag())},
		{name: "Lag of the lists", begin: relisting(on(apisim.Match{Resource: "*"}, apisim.Lag()))},
		{name: "RefuseStreams", begin: func(w *world) func() int {
			w.server.Compact()
			return on(apisim.Match{Verb: "watch"}, apisim.RefuseStreams())(w)
		}},
		{name: "ExpireTokens", begin: inPages(apisim.ExpireTokens())},
		{name: "EmptyPages", begin: inPages(apisim.EmptyPages())},
		{name: "RepeatTokens", begin: inPages(apisim.RepeatTokens())},
	}
}

// inPages goes wrong in lists of more than one page.
func inPages(broken apisim.Fault) func(w *world) func() int {
	return func(w *world) func() int {
		w.fill()
		return relisting(on(apisim.Match{Verb: "list", Query: map[string]string{"continue": ""}}, broken))(w)
	}
}

// ofServer are faults of the server as a whole.
func ofServer() []fault {
	restarted := func(o apisim.RestartOptions) func(w *world) { return func(w *world) { w.server.Restart(o) } }
	rows := []fault{
		{name: "CutConnections", begin: always(nothing, nothing), during: func(w *world) {
			for range 10 {
				w.server.CutConnections()
				time.Sleep(time.Second)
			}
		}},
		{name: "SetAvailable", begin: always(
			func(w *world) { w.server.SetAvailable(false) }, func(w *world) { w.server.SetAvailable(true) })},
		{name: "Restart", begin: always(nothing, nothing), during: restarted(apisim.RestartOptions{})},
		{name: "Restart with history", begin: always(nothing, nothing), during: restarted(apisim.RestartOptions{KeepHistory: true})},
		{name: "Restart that takes a while", begin: always(nothing, nothing), during: restarted(apisim.RestartOptions{Down: time.Minute})},
		{name: "Compact", begin: always(func(w *world) { w.server.SetAvailable(false) }, nothing), during: func(w *world) {
			w.server.Compact()
			w.server.SetAvailable(true)
		}},
		{name: "RefuseStreamedLists", begin: relisting(always(func(w *world) { w.server.CutConnections() }, nothing))},
		{name: "SetUsers without it", begin: as(apisim.User{Name: "other", Token: "other"})},
		{name: "SetUsers who may only read", begin: as(apisim.User{Name: "controller", Token: bearer,
			Allow: []apisim.Rule{{Verbs: []string{"get", "list", "watch"}, Resources: []string{"*"}}}})},
		{name: "SetUsers who may only write", begin: as(apisim.User{Name: "controller", Token: bearer,
			Allow: []apisim.Rule{{Verbs: []string{"create", "update", "patch", "delete"}, Resources: []string{"*"}}}})},
		{name: "Rewind", loses: true, begin: always(rewind, nothing)},
	}
	for _, resource := range []schema.GroupVersionResource{setsResource, podsResource} {
		rows = append(rows, fault{name: "RemoveResource " + resource.Resource, loses: true,
			begin: always(func(w *world) { w.lose(resource) }, nothing)})
	}
	return rows
}

// as lets only a user in, for a while.
func as(user apisim.User) func(w *world) func() int {
	users := func(users ...apisim.User) func(w *world) {
		return func(w *world) {
			if err := w.server.SetUsers(users...); err != nil {
				w.t.Fatal(err)
			}
			w.server.CutConnections()
		}
	}
	return always(users(user), users())
}

// fill adds pods of another namespace, once: more than one page of them.
func (w *world) fill() {
	w.t.Helper()
	for i := range 600 {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "kube-system", "filler-"+string(rune('a'+i/26))+string(rune('a'+i%26))
		if _, err := w.server.Create(w.t.Context(), pod); err != nil && !apierrors.IsAlreadyExists(err) {
			w.t.Fatal(err)
		}
	}
}

// rewind restores a backup after the controller has worked, and starts the controller again,
// as administrators do: a server accepts versions of the future, so that informers wait.
func rewind(w *world) {
	w.t.Helper()
	before := w.server.Snapshot()
	if len(list[*appsv1.ReplicaSet](w, setsResource)) > 0 {
		w.delete(podsResource, w.anyPod())
		time.Sleep(10 * time.Second)
	}
	w.server.Rewind(before)
	if w.stop != nil {
		w.stop()
		w.start()
	}
}

// lose removes a resource and restores it without objects. The user creates the user's objects
// again.
func (w *world) lose(resource schema.GroupVersionResource) {
	w.t.Helper()
	var again []runtime.Object
	switch resource {
	case podsResource:
		for _, pod := range list[*corev1.Pod](w, podsResource) {
			if pod.Labels["app"] == "stray" {
				pod = pod.DeepCopy()
				pod.ResourceVersion, pod.UID = "", ""
				again = append(again, pod)
			}
		}
	case setsResource:
		for _, set := range list[*appsv1.ReplicaSet](w, setsResource) {
			set = set.DeepCopy()
			set.ResourceVersion, set.UID = "", ""
			again = append(again, set)
		}
	}
	w.server.RemoveResource(resource)
	time.Sleep(20 * time.Second)
	w.server.RestoreResource(resource)
	w.create(again...)
	time.Sleep(maxWait) // until a step can begin from where it was
}
