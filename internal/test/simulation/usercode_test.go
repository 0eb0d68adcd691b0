package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// userCode is a transform and an index function that fail for a while. The methods of a
// nil one never fail.
type userCode struct {
	hows []string // the ways in which the transform may fail

	mu     sync.Mutex // guards the rest
	fails  string     // how they fail now, "" if they do not
	calls  int
	every  int             // they fail at each call of this number
	failed map[string]bool // the keys of objects at which they failed and that were not healed
	broke  bool            // they failed since the last audit
}

var errUserCode = errors.New("a function of the user fails for a while")

// begin makes the functions fail at every nth call.
func (c *userCode) begin(how string, every int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails, c.every = how, every
}

// end ends that and returns the keys at which they failed.
func (c *userCode) end() (keys []string) {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	keys = slices.Sorted(maps.Keys(c.failed))
	c.fails, c.failed = "", nil
	return keys
}

// forget reports whether they failed since it was called last.
func (c *userCode) forget() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	broke := c.broke
	c.broke = false
	return broke
}

// fail returns how a call is to fail, "" if it is not.
func (c *userCode) fail(key string) string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls++; c.fails == "" || c.calls%c.every != 0 {
		return ""
	}
	if c.failed == nil {
		c.failed = map[string]bool{}
	}
	c.failed[key], c.broke = true, true
	return c.fails
}

// index is an index function by the label n.
func (c *userCode) index(obj tidings.Object) ([]string, error) {
	switch c.fail(keyOf(obj)) {
	case "":
		return []string{obj.GetLabels()["n"]}, nil
	case "panic":
		panic(errUserCode)
	default:
		return nil, errUserCode
	}
}

// strippedVersion is the annotation with the version that a transform has removed.
const strippedVersion = "stripped-version"

// refusable reports whether the transform of an informer that refuses states fails for a label n.
func refusable(n string) bool { return strings.HasSuffix(n, "3") }

// transform returns the transform of a subject.
func transform[T any](s *subject) func(T) (T, error) {
	return func(obj T) (made T, err error) {
		m := any(obj).(tidings.Object)
		if s.refuses && refusable(m.GetLabels()["n"]) {
			return made, errUserCode
		}
		switch s.code.fail(keyOf(m)) {
		case "":
			if s.strips {
				whole := m.(metav1.Object)
				whole.SetAnnotations(map[string]string{strippedVersion: m.GetResourceVersion()})
				whole.SetResourceVersion("")
			}
			return obj, nil
		case "panic":
			panic(errUserCode)
		case "nil":
			return made, nil
		default:
			return made, errUserCode
		}
	}
}

// failUserCode makes the functions of the user of one informer fail.
func (w *world) failUserCode() {
	s := w.anySubject()
	if s.code == nil {
		return
	}
	how, every := s.code.hows[w.random.IntN(len(s.code.hows))], 1+w.random.IntN(4)
	w.note("every call of number %d of the functions of %s fails: %s", every, s.kind, how)
	w.met("functions of the user", 1)
	s.code.begin(how, every)
}

// healAll ends that, and changes the objects that the functions failed at: it is their
// next event that takes them into the cache.
func (w *world) healAll() {
	for _, s := range w.subjects {
		for _, key := range s.code.end() {
			namespace, name := splitKey(key)
			if obj, err := w.server.Get(context.Background(), s.scope.resource, namespace, name); err == nil {
				w.written++
				w.note("heal %s, at which the functions of %s failed", key, s.kind)
				w.update(s.scope.resource, obj, fmt.Sprint("n", w.written))
			}
		}
	}
}

// lastingFault is a fault with which an informer stays in step.
type lastingFault struct {
	name  string
	match apisim.Match
	make  func(w *world) apisim.Fault
}

var (
	watches   = apisim.Match{Verb: "watch"}
	somePages = apisim.Match{Verb: "list", Probability: 0.125}
)

// lastingFaults fail either every watch, so that lists have to replace it, or now and then a
// page of a list.
var lastingFaults = []lastingFault{
	{"watches refused", watches, func(w *world) apisim.Fault {
		return apisim.Refuse([]int{400, 403, 500, 503, 504}[w.random.IntN(5)], 0)
	}},
	{"watches refused by a proxy", watches, func(w *world) apisim.Fault {
		code := []int{414, 431, 502}[w.random.IntN(3)]
		return apisim.Answer(func(rw http.ResponseWriter, _ *http.Request) {
			http.Error(rw, "not through here", code)
		})
	}},
	{"watches that bring errors", watches, func(w *world) apisim.Fault {
		return apisim.Fail(apisim.EachFrame, []int{403, 500, 504}[w.random.IntN(3)])
	}},
	{"watches that bring noise", watches, func(*world) apisim.Fault {
		return apisim.Garble(apisim.EachFrame)
	}},
	{"watches that bring half an event", watches, func(*world) apisim.Fault {
		return apisim.Truncate(apisim.EachFrame)
	}},
	{"watches of unknown events", watches, func(*world) apisim.Fault {
		return apisim.Answer(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			io.WriteString(rw, `{"type":"STRANGE","object":{}}`+"\n") //nolint:errcheck // the client is gone
		})
	}},
	{"pages refused", somePages, func(w *world) apisim.Fault {
		code := []int{429, 500, 503, 504}[w.random.IntN(4)]
		return apisim.Refuse(code, []time.Duration{0, time.Second}[w.random.IntN(2)])
	}},
	{"pages cut", somePages, func(*world) apisim.Fault { return apisim.CutWithin(1) }},
	{"pages dropped", somePages, func(*world) apisim.Fault { return apisim.Drop() }},
}

// beginLasting injects one of them, writes, and gives the informers time to come into step.
func (w *world) beginLasting() (end func()) {
	h := lastingFaults[w.random.IntN(len(lastingFaults))]
	fault := h.make(w)
	w.note("lasting fault: %s: %v", h.name, fault)
	i := w.server.Inject(h.match, fault)
	if h.match.Verb == "list" {
		w.server.RefuseStreamedLists(true)
		w.server.Compact()
	}
	w.cut()
	w.burst()
	time.Sleep(quiet)
	synctest.Wait()
	return func() {
		i.Lift()
		w.server.RefuseStreamedLists(false)
		w.met(h.name, i.Met())
	}
}
