package contract_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// anyAnswer is an answer of a server or of a proxy.
type anyAnswer struct {
	name   string
	fault  apisim.Fault
	lists  bool // it is about lists only
	events bool // it is about running watches only
}

func anyAnswers() []anyAnswer {
	const decades = (1<<31 - 1) * time.Second
	all := []anyAnswer{
		{name: "cut head", fault: apisim.CutBefore(0)},
		{name: "cut body", fault: apisim.CutWithin(1)},
		{name: "truncated body", fault: apisim.Truncate(1)},
		{name: "garbled body", fault: apisim.Garble(1)},
		{name: "dropped", fault: apisim.Drop()},
		{name: "decades of patience", fault: apisim.Refuse(http.StatusTooManyRequests, decades)},
		{name: "429 with Retry-After", fault: apisim.Refuse(429, time.Second)},
		{name: "503 with Retry-After", fault: apisim.Refuse(503, time.Second)},
		{name: "empty pages", fault: apisim.EmptyPages(), lists: true},
		{name: "repeated tokens", fault: apisim.RepeatTokens(), lists: true},
		{name: "the other encoding", fault: apisim.Call(otherEncoding)},
		{name: "expired tokens", fault: apisim.ExpireTokens(), lists: true},
	}
	for _, code := range []int{400, 403, 404, 410, 414, 422, 429, 431, 500, 502, 503, 504} {
		all = append(all, anyAnswer{name: fmt.Sprint(code), fault: apisim.Refuse(code, 0)})
	}
	for _, code := range []int{403, 410, 429, 500, 504} {
		name := fmt.Sprint("ERROR event of ", code)
		all = append(all, anyAnswer{name: name, fault: apisim.Fail(1, code), events: true},
			anyAnswer{name: name + " at once", fault: apisim.Fail(0, code), events: true})
	}
	return all
}

// otherEncoding makes a request for protobuf one for JSON, and the other way round.
func otherEncoding(r *http.Request) {
	const inJSON, inProtobuf = "application/json", "application/vnd.kubernetes.protobuf"
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, inProtobuf) {
		r.Header.Set("Accept", inJSON)
	} else {
		r.Header.Set("Accept", strings.ReplaceAll(accept, inJSON, inProtobuf))
	}
}

// ownMap is a Go type of a program's own, which has no protobuf.
type ownMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (m *ownMap) DeepCopyObject() runtime.Object {
	return &ownMap{TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy()}
}

// ownKind asks for config maps in that type.
func ownKind(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
	i, err := tidings.For[*ownMap](f, s)
	return newProbe(t, i, err)
}

// anyPlace is a request that may meet an answer.
type anyPlace struct {
	name  string
	match apisim.Match
	paged bool // lists are in pages
	watch bool // it is a watch that is no list
}

var anyPlaces = []anyPlace{
	{name: "page 1", match: apisim.Match{Verb: "list", Page: 1}, paged: true},
	{name: "page 2", match: apisim.Match{Verb: "list", Page: 2}, paged: true},
	{name: "page 3", match: apisim.Match{Verb: "list", Page: 3}, paged: true},
	{name: "streamed list", match: apisim.Match{
		Verb: "watch", Query: map[string]string{"sendInitialEvents": "true"},
	}},
	{name: "watch", match: apisim.Match{Verb: "watch"}, paged: true, watch: true},
}

// TestAnyAnswerAnywhere has each place meet each answer, once, a few times in a row and for
// ever, while the first list is read and when it is read again. The informer must be in step
// with the server after some minutes, or, under an answer for ever that leaves no other way,
// when the answer is lifted; meanwhile it must be polite, and say nothing that is not so.
func TestAnyAnswerAnywhere(t *testing.T) {
	asks := maps.Clone(kinds)
	asks["of its own type"] = ownKind
	for _, place := range anyPlaces {
		for _, answer := range anyAnswers() {
			if answer.lists && place.match.Verb != "list" || answer.events &&
				place.match.Verb != "watch" {
				continue
			}
			for _, times := range []int{1, 5, 0} {
				for _, again := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%d times, again %v",
						place.name, answer.name, times, again), func(t *testing.T) {
						for kind, ask := range asks {
							t.Run(kind, func(t *testing.T) {
								synctest.Test(t, func(t *testing.T) {
									meetAnywhere(t, kind, ask, place, answer, times, again)
								})
							})
						}
					})
				}
			}
		}
	}
}

func meetAnywhere(
	t *testing.T, kind string, ask askFor, place anyPlace, answer anyAnswer, times int, again bool,
) {
	// The first list is consistent, or it would come in one page.
	o := tidings.FactoryOptions{Transport: tidings.Transport{
		NoStreamedLists: place.paged, PageSize: 2, ConsistentFirstList: true,
	}}
	if kind == "of its own type" {
		o.Scheme = runtime.NewScheme()
		o.Scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &ownMap{})
	}
	w := newWorld(t, ask, o, apisim.Options{})
	defer w.end()
	w.probe = w.ask(t, w.factory, tidings.Selection{Namespace: "default"})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.create(name, "1")
	}
	l := w.follow()
	match := place.match
	match.Times = times
	faults := []apisim.Fault{aMoment, answer.fault}
	var injection *apisim.Injection
	if again {
		w.start()
		injection = w.server.Inject(match, faults...)
		w.server.CutConnections()
	} else {
		injection = w.server.Inject(match, faults...)
		w.startFactory()
	}
	w.update("a", "2")
	w.remove("b")
	if again && !place.watch {
		w.server.Compact() // leads to a list
	}
	w.after(30 * time.Minute)
	before := len(w.server.Requests()) // of three pages a list; client-go would send 190
	w.update("c", "2")
	w.after(15 * time.Minute)
	if n := len(w.server.Requests()) - before; n > 150 {
		t.Errorf("%d requests in a quarter of an hour", n)
	}
	// A page that fails for ever leaves no way; a watch, or a streamed list, leaves that by pages.
	if times > 0 || place.match.Verb == "watch" && !patient(answer) {
		l.sum()
	}
	injection.Lift()
	w.after(15 * time.Minute)
	l.agrees()
}

// patient reports whether an answer says that another request would fail as well, or that
// the resource is gone.
func patient(a anyAnswer) bool {
	switch a.name {
	case "404", "429", "429 with Retry-After", "503 with Retry-After", "decades of patience",
		"ERROR event of 429", "ERROR event of 429 at once", "dropped", "cut head":
		return true
	}
	return false
}
