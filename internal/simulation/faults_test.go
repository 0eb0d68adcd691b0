package simulation

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// standing is something that is wrong until it is lifted.
type standing struct {
	name      string
	lift      func()
	injection *apisim.Injection // nil if it is of the server as a whole
}

// stands reports whether something of that name is wrong.
func (w *world) stands(name string) bool {
	for _, s := range w.standing {
		if s.name == name {
			return true
		}
	}
	return false
}

// lift ends the nth of what is wrong, if there is one.
func (w *world) lift(n int) {
	if n >= len(w.standing) {
		return
	}
	s := w.standing[n]
	w.note("lift %s", s.name)
	s.lift()
	if s.injection != nil {
		w.tally.met(s.name, s.injection.Met())
	}
	w.standing = append(w.standing[:n:n], w.standing[n+1:]...)
}

// liftAll ends all that is wrong.
func (w *world) liftAll() {
	for len(w.standing) > 0 {
		w.lift(0)
	}
}

// faulty is a kind of fault of requests.
type faulty struct {
	name string
	// verbs are those of requests that it makes sense for; none means list and watch.
	verbs []string
	make  func(w *world) apisim.Fault
}

var faultyRequests = []faulty{
	{"Refuse", nil, func(w *world) apisim.Fault {
		code := []int{401, 403, 404, 410, 429, 500, 503, 504}[w.random.IntN(8)]
		return apisim.Refuse(code, []time.Duration{0, 0, time.Second, 10 * time.Second}[w.random.IntN(4)])
	}},
	{"Delay", nil, func(w *world) apisim.Fault { return apisim.Delay(w.between(0, 600)) }},
	{"Drop", nil, func(*world) apisim.Fault { return apisim.Drop() }},
	{"CutBefore", nil, func(w *world) apisim.Fault { return apisim.CutBefore(w.anyFrame(0)) }},
	{"CutWithin", nil, func(w *world) apisim.Fault { return apisim.CutWithin(w.anyFrame(1)) }},
	{"CutAfter", nil, func(w *world) apisim.Fault { return apisim.CutAfter(w.anyFrame(0)) }},
	{"Truncate", nil, func(w *world) apisim.Fault { return apisim.Truncate(w.anyFrame(1)) }},
	{"Garble", nil, func(w *world) apisim.Fault { return apisim.Garble(w.anyFrame(1)) }},
	{"Inflate", nil, func(w *world) apisim.Fault {
		return apisim.Inflate(w.anyFrame(1), 1000+w.random.IntN(2*nativeFrameLimit)*(1+3*w.random.IntN(2)))
	}},
	{"Duplicate", []string{"watch"}, func(w *world) apisim.Fault { return apisim.Duplicate(w.anyFrame(1)) }},
	{"Stall", nil, func(w *world) apisim.Fault {
		if w.random.IntN(2) == 0 {
			return apisim.Stall(w.anyFrame(0), 0)
		}
		return apisim.Stall(w.anyFrame(0), w.between(1, 1800))
	}},
	{"DropBookmarks", []string{"watch"}, func(*world) apisim.Fault { return apisim.DropBookmarks() }},
	{"Fail", []string{"watch"}, func(w *world) apisim.Fault {
		return apisim.Fail(w.anyFrame(0), []int{403, 404, 410, 410, 410, 429, 500, 504}[w.random.IntN(8)])
	}},
	{"Lag", nil, func(*world) apisim.Fault { return apisim.Lag() }},
	{"RefuseStreams", []string{"watch"}, func(*world) apisim.Fault { return apisim.RefuseStreams() }},
	{"ExpireTokens", []string{"list"}, func(*world) apisim.Fault { return apisim.ExpireTokens() }},
	{"Call", nil, func(w *world) apisim.Fault {
		if w.random.IntN(2) == 0 {
			return apisim.Call(func(*http.Request) { w.server.Compact() })
		}
		return apisim.Call(func(*http.Request) { w.touch() })
	}},
	{"Answer", nil, func(w *world) apisim.Fault {
		page := []string{"<html>log in first</html>", "", "{}", "null", `{"kind":"Status","code":200}`}[w.random.IntN(5)]
		return apisim.Answer(func(rw http.ResponseWriter, _ *http.Request) {
			io.WriteString(rw, page) //nolint:errcheck // a client that is gone needs no answer
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

// fault makes something wrong with some requests.
func (w *world) fault() {
	if len(w.standing) >= 5 {
		w.lift(0)
	}
	f := faultyRequests[w.random.IntN(len(faultyRequests))]
	verbs := f.verbs
	if verbs == nil {
		verbs = []string{"list", "watch", "watch", ""}
	}
	m := apisim.Match{Verb: verbs[w.random.IntN(len(verbs))], Resource: []string{"", "*", "configmaps", "widgets.example.com"}[w.random.IntN(4)]}
	if w.random.IntN(2) == 0 {
		m.UserAgent = w.anySubject().kind
	}
	switch w.random.IntN(3) {
	case 0:
		m.Times = 1 + w.random.IntN(3)
	case 1:
		m.Probability = 0.1 + 0.8*w.random.Float64()
	}
	made := f.make(w)
	w.note("inject %v at %+v", made, m)
	i := w.server.Inject(m, made)
	w.standing = append(w.standing, &standing{f.name, i.Lift, i})
	if w.random.IntN(3) > 0 {
		// Watches that run do not meet it: they are made to begin anew.
		w.cut()
	}
}

// touch writes in the middle of a request.
func (w *world) touch() {
	l := &w.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	obj, err := w.server.Get(context.Background(), configMaps, "a", "touched")
	if err != nil {
		w.Error(err)
		return
	}
	w.touched++
	changed := newObject(configMaps, "a", "touched", fmt.Sprint("touched-", w.touched))
	changed.(interface{ SetResourceVersion(string) }).SetResourceVersion(obj.(interface{ GetResourceVersion() string }).GetResourceVersion())
	if _, err := w.server.Update(context.Background(), changed); err != nil && !strings.Contains(err.Error(), "closed") {
		w.Error(err)
	}
}
