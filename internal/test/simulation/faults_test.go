package simulation

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
)

// activeFault is a fault until it is lifted.
type activeFault struct {
	name      string
	lift      func()
	injection *apisim.Injection // nil if it is of the server as a whole
}

// met counts a fault.
func (w *world) met(name string, n int) { w.totals.faults[name] += n }

// isActive reports whether a fault of that name is active.
func (w *world) isActive(name string) bool {
	return slices.ContainsFunc(w.active, func(f *activeFault) bool { return f.name == name })
}

// lift ends the nth active fault, if there is one.
func (w *world) lift(n int) {
	if n >= len(w.active) {
		return
	}
	s := w.active[n]
	w.note("lift %s", s.name)
	s.lift()
	if s.injection != nil {
		w.met(s.name, s.injection.Met())
	}
	w.active = append(w.active[:n:n], w.active[n+1:]...)
}

// liftAll ends all faults.
func (w *world) liftAll() {
	for len(w.active) > 0 {
		w.lift(0)
	}
}

// requestFault is a kind of fault of requests.
type requestFault struct {
	name string
	// verbs are those of the requests that can have it; none means list and watch.
	verbs []string
	make  func(w *world) apisim.Fault
}

var requestFaults = []requestFault{
	{"Refuse", nil, func(w *world) apisim.Fault {
		code := []int{401, 403, 404, 410, 429, 500, 503, 504}[w.random.IntN(8)]
		return apisim.Refuse(code,
			[]time.Duration{0, 0, time.Second, 10 * time.Second}[w.random.IntN(4)])
	}},
	{"Delay", nil, func(w *world) apisim.Fault { return apisim.Delay(w.between(0, 600)) }},
	{"Drop", nil, func(*world) apisim.Fault { return apisim.Drop() }},
	{"CutBefore", nil, func(w *world) apisim.Fault { return apisim.CutBefore(w.anyFrame(0)) }},
	{"CutWithin", nil, func(w *world) apisim.Fault { return apisim.CutWithin(w.anyFrame(1)) }},
	{"CutAfter", nil, func(w *world) apisim.Fault { return apisim.CutAfter(w.anyFrame(0)) }},
	{"CutLater", nil, func(w *world) apisim.Fault { return apisim.CutLater(w.between(1, 600)) }},
	{"Truncate", nil, func(w *world) apisim.Fault { return apisim.Truncate(w.anyFrame(1)) }},
	{"Garble", nil, func(w *world) apisim.Fault { return apisim.Garble(w.anyFrame(1)) }},
	{"Inflate", nil, func(w *world) apisim.Fault {
		by := 1000 + w.random.IntN(2*nativeFrameLimit)*(1+3*w.random.IntN(2))
		return apisim.Inflate(w.anyFrame(1), by)
	}},
	{"Duplicate", []string{"watch"}, func(w *world) apisim.Fault { return apisim.Duplicate(w.anyFrame(1)) }},
	{"Stall", nil, func(w *world) apisim.Fault {
		if w.random.IntN(2) == 0 {
			return apisim.Stall(w.anyFrame(0), 0)
		}
		return apisim.Stall(w.anyFrame(0), w.between(1, 1800))
	}},
	// A list that is old when it arrives: the state is that of the request.
	{"old lists", []string{"list"}, func(w *world) apisim.Fault {
		return apisim.Stall(1, []time.Duration{w.between(0, 3), w.between(0, 60)}[w.random.IntN(2)])
	}},
	{"DropBookmarks", []string{"watch"}, func(*world) apisim.Fault { return apisim.DropBookmarks() }},
	{"Fail", []string{"watch"}, func(w *world) apisim.Fault { return apisim.Fail(w.anyFrame(0), w.anyCode()) }},
	{"FailLater", []string{"watch"}, func(w *world) apisim.Fault {
		return apisim.FailLater(w.between(1, 600), w.anyCode())
	}},
	{"Lag", nil, func(*world) apisim.Fault { return apisim.Lag() }},
	{"RefuseStreams", []string{"watch"}, func(*world) apisim.Fault { return apisim.RefuseStreams() }},
	{"ExpireTokens", []string{"list"}, func(*world) apisim.Fault { return apisim.ExpireTokens() }},
	{"EmptyPages", []string{"list"}, func(*world) apisim.Fault { return apisim.EmptyPages() }},
	{"RepeatTokens", []string{"list"}, func(*world) apisim.Fault { return apisim.RepeatTokens() }},
	{"Call", nil, func(w *world) apisim.Fault {
		if w.random.IntN(2) == 0 {
			return apisim.Call(func(*http.Request) { w.server.Compact() })
		}
		return apisim.Call(func(*http.Request) { w.touch() })
	}},
	// A server that does not know shard selectors, beside those that do.
	{"no shard selectors", nil, func(*world) apisim.Fault {
		return apisim.Call(func(r *http.Request) {
			q := r.URL.Query()
			q.Del("shardSelector")
			r.URL.RawQuery = q.Encode()
		})
	}},
	{"Answer", nil, func(w *world) apisim.Fault {
		page := []string{
			"<html>log in first</html>", "", "{}", "null", `{"kind":"Status","code":200}`,
		}[w.random.IntN(5)]
		return apisim.Answer(func(rw http.ResponseWriter, _ *http.Request) {
			io.WriteString(rw, page) //nolint:errcheck // the client is gone
		})
	}},
}

// anyFrame returns the number of a frame, and now and then all of them.
func (w *world) anyFrame(least int) int {
	if n := w.random.IntN(6); n > 0 {
		return least + n - 1
	}
	return apisim.EachFrame
}

// anyCode returns the code of an error event; most often that of a version that is gone.
func (w *world) anyCode() int {
	return []int{403, 404, 410, 410, 410, 429, 500, 504}[w.random.IntN(8)]
}

// fault injects a fault into some requests.
func (w *world) fault() {
	if len(w.active) >= 5 {
		w.lift(0)
	}
	f := requestFaults[w.random.IntN(len(requestFaults))]
	verbs := f.verbs
	if verbs == nil {
		verbs = []string{"list", "watch", "watch", ""}
	}
	m := apisim.Match{
		Verb:     verbs[w.random.IntN(len(verbs))],
		Resource: []string{"", "*", "configmaps", "widgets.example.com"}[w.random.IntN(4)],
	}
	if w.random.IntN(2) == 0 {
		m.UserAgent = w.anySubject().kind
	}
	if w.random.IntN(5) == 0 { // the others can be read
		m.Namespace = namespaces[w.random.IntN(len(namespaces))]
	}
	switch w.random.IntN(3) {
	case 0:
		m.Times = 1 + w.random.IntN(3)
	case 1:
		m.Probability = 0.1 + 0.8*w.random.Float64()
	}
	w.inject(f.name, m, f.make(w))
	if w.random.IntN(3) > 0 {
		// Running watches do not meet it: they have to begin anew.
		w.cut()
	}
}

// inject injects a fault until it is lifted.
func (w *world) inject(name string, m apisim.Match, f apisim.Fault) {
	w.note("inject %v at %+v", f, m)
	i := w.server.Inject(m, f)
	w.active = append(w.active, &activeFault{name, i.Lift, i})
}

// touch writes in the middle of a request.
func (w *world) touch() {
	l := &w.writeLog
	l.mu.Lock()
	defer l.mu.Unlock()
	obj, err := w.server.Get(context.Background(), configMaps, "a", "touched")
	if err != nil {
		w.Error(err)
		return
	}
	w.touched++
	changed := newObject(configMaps, "a", "touched", fmt.Sprint("touched-", w.touched))
	changed.(metav1.Object).SetResourceVersion(obj.(metav1.Object).GetResourceVersion())
	_, err = w.server.Update(context.Background(), changed)
	if err != nil && !strings.Contains(err.Error(), "closed") {
		w.Error(err)
	}
}
