package cache_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/test/seeds"
)

var wireSeeds = seeds.New("wire", "TestWire", 50)

// TestWire runs a native informer, one of the drop-in and client-go's, which follow one server
// that answers by a random script, each from the script's beginning, while objects change. See
// [runWire] for what is required of them. Ours may not send many more requests than client-go,
// which sends none while it waits for an answer of wireScript.order.
func TestWire(t *testing.T) {
	for seed := range wireSeeds.All() {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			script := newScript(rand.New(rand.NewPCG(seed, 1)))
			theirs, ours := runWire(t, script)
			for _, w := range ours {
				if script.order == nil && w.requests > theirs.requests+wireSlack {
					t.Errorf("%s made %d requests, client-go %d", w.name, w.requests, theirs.requests)
				}
			}
		})
	}
}

// FuzzWire makes the scripts of TestWire from bytes.
func FuzzWire(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 1<<14 {
			runWire(t, newScript(&scriptBytes{data}))
		}
	})
}

// TestWireEachAnswer gives each answer in each place, once, a few times in a row and for ever,
// from the first list on and later. Each round has another kind and another beginning.
func TestWireEachAnswer(t *testing.T) {
	watches := []*answer{}
	for _, code := range []int{403, 410, 429, 500, 504} {
		watches = append(watches, failed(code, 0, 0), failed(code, 0, time.Second))
	}
	each := []*answer{
		spoilt(cut, 0, 0, 0), spoilt(cut, 90, 0, 0), spoilt(inOrder, 90, 0, 0),
		spoilt(flipped, 4, 0xff, 0), dropped(), impatient(429), refused(429, "1"), refused(503, "1"),
		otherEncoding(),
	}
	for _, code := range []int{400, 403, 404, 410, 414, 422, 429, 431, 500, 502, 503, 504} {
		each = append(each, refused(code, ""))
	}
	places := []struct {
		steps   []step
		answers []*answer
	}{
		{[]step{listStep}, append(slices.Clone(each), emptyPage(), repeatedToken())},
		{[]step{pageStep}, append(slices.Clone(each), emptyPage(), repeatedToken())},
		{[]step{listStep, pageStep}, []*answer{emptyPage(), repeatedToken()}},
		{[]step{streamStep}, append(slices.Clone(each), watches...)},
		{[]step{watchStep}, append(slices.Clone(each), watches...)},
	}
	n := 0
	for round := range max(1, min(wireSeeds.Count()/200, len(wireKinds)*laters)) {
		for _, place := range places {
			for _, a := range place.answers {
				for _, times := range []int{1, 5, 0} {
					n++
					script := wireScript{
						seed: uint64(n), kind: wireKinds[(n+round)%len(wireKinds)],
						later: later((n/3 + round) % laters), paged: true,
						first: map[step][]*answer{}, rest: map[step]*answer{},
					}
					if !slices.Contains(place.steps, streamStep) {
						script.rest[streamStep] = refused(422, "")
					}
					for _, at := range place.steps {
						if script.first[at] = slices.Repeat([]*answer{a}, times); times == 0 {
							script.rest[at] = a
						}
					}
					t.Run(fmt.Sprintf("%d: %s/%s/%d times", n, place.steps, a, times),
						func(t *testing.T) { runWire(t, script) })
				}
			}
		}
	}
}

const (
	// hostileTime is the time for which a server is hostile, orderedTime that for which it is
	// so with answers of wireScript.order, which may have pauses of minutes.
	hostileTime = 4 * time.Minute
	orderedTime = 30 * time.Minute
	// followTime is a quarter of the time within which a cache is in step with a server that is
	// hostile but answers lists. In the last one, followRequests are allowed, or wireSlack more
	// than client-go's.
	followTime     = 15 * time.Minute
	followRequests = 150
	// recoveryTime is the time within which a cache is in step with an honest server, lieTime
	// that after states that the server never had: the watch that brought them may have to end.
	recoveryTime = 15 * time.Minute
	lieTime      = time.Hour
	// wireSlack is the number of requests that ours may make beyond client-go's: ours list again
	// where client-go goes on with a state that may be wrong. Their backoff allows fourteen
	// attempts in that time, of a streamed list, a list and a watch each.
	wireSlack = 3 * 14
)

// runWire runs a script. Ours must be in step with the server while it is hostile, if it answers
// lists, and after it has turned honest. The events of a handler must follow from each other and
// add up to the cache. client-go must be in step in the end, except after clientGoStays.
func runWire(t *testing.T, script wireScript) (theirs *wired, ours []*wired) {
	bubble(t, func(t *testing.T) {
		s := newWireServer(t, script)
		w := &writer{t: t, random: rand.New(rand.NewPCG(script.seed, 1)), server: s.api}
		w.begin()
		defer func() {
			if t.Failed() {
				t.Logf("%s\nwrites:\n  %s\nrequests:\n  %s", script,
					strings.Join(w.notes, "\n  "), strings.Join(s.log, "\n  "))
			}
		}()
		all := s.informers(t)
		theirs, ours = all[0], all[1:]
		if script.later != atOnce {
			settle(10 * time.Second)
			s.begin()
		}
		lasts := hostileTime
		if script.order != nil {
			lasts = orderedTime
		}
		for began := time.Now(); time.Since(began) < lasts; {
			time.Sleep(time.Duration(w.random.IntN(20_000)) * time.Millisecond)
			s.write(w)
		}
		for _, of := range all {
			of.requests = s.requests(of.name)
		}
		s.follow(t, all)
		close(s.honest)
		s.write(w)
		if script.lies() == ofStates { // an invented state may look like one of the server's
			for _, m := range w.list() {
				w.replace(m)
			}
		}
		s.recover(t, all)
		for _, of := range ours {
			s.check(t, of, theirs)
		}
		if theirs.recovered < 0 && !slices.ContainsFunc(clientGoStays, script.has) {
			t.Errorf("client-go holds\n  %v\nthe server\n  %v", theirs.cached(wireState), s.holds(t))
		}
	})
	return theirs, ours
}

// clientGoStays are the beginnings of the answers after which client-go may stay behind an honest
// server; ours may not.
var clientGoStays = []string{
	"no answer", "silence after", "and silence", "a pause", // it has no time limit
	aDay + " s", `"4294967297"`, // it waits for as long as it is told
	// It goes on from any version, and from none.
	"a bookmark of", "a list of no number", "an object that cannot be decoded",
	"a cut", "an end in order", // of several deletes of one version, it has one (kubernetes#110210)
}

// informers runs an informer of each kind: client-go's, the drop-in's and a native one.
func (s *wireServer) informers(t *testing.T) (all []*wired) {
	kind := s.script.kind
	for _, of := range []struct {
		name string
		open func(*testing.T, *rest.Config) *wired
	}{
		{"client-go", func(t *testing.T, c *rest.Config) *wired { return shared(t, c, kind.theirs) }},
		{"drop-in", func(t *testing.T, c *rest.Config) *wired { return shared(t, c, kind.ours) }},
		{"native", kind.native},
	} {
		config := rest.CopyConfig(s.api.Config())
		config.QPS, config.UserAgent, config.ContentType = -1, of.name, kind.contentType
		if kind.contentType == protobuf {
			config.AcceptContentTypes = protobuf + "," + asJSON
		}
		w := of.open(t, config)
		w.name = of.name
		if s.script.lies() >= ofVersions && w.rewind != nil {
			w.rewind() // P16: a version that goes back begins a new history
		}
		all = append(all, w)
	}
	return all
}

// follow requires that informers are in step while the server is hostile, if it answers lists.
func (s *wireServer) follow(t *testing.T, all []*wired) {
	if !s.script.leavesLists() {
		return
	}
	settle(3 * followTime)
	before := map[string]int{}
	for _, w := range all {
		before[w.name] = s.requests(w.name)
	}
	settle(followTime)
	most := max(followRequests, s.requests(all[0].name)-before[all[0].name]+wireSlack)
	for _, w := range all[1:] {
		if !s.inStep(t, w) && !s.mayHang(w) {
			t.Errorf("%s holds\n  %v\nthe server\n  %v\nwhile lists are answered", w.name,
				w.cached(wireState), s.holds(t))
		}
		if n := s.requests(w.name) - before[w.name]; n > most {
			t.Errorf("%s made %d requests in %v, want at most %d", w.name, n, followTime, most)
		}
	}
}

// recover waits until all informers are in step with the server.
func (s *wireServer) recover(t *testing.T, all []*wired) {
	most := recoveryTime
	if s.script.lies() == ofStates {
		most = lieTime
	}
	for _, w := range all {
		w.recovered = -1
	}
	for began, left := time.Now(), len(all); left > 0 && time.Since(began) < most; {
		settle(5 * time.Second)
		left = len(all)
		for _, w := range all {
			switch inStep := s.inStep(t, w); {
			case !inStep:
				w.recovered = -1
			case w.recovered < 0:
				w.recovered = time.Since(began)
			}
			if w.recovered >= 0 {
				left--
			}
		}
	}
}

// check requires what runWire says of one of ours.
func (s *wireServer) check(t *testing.T, w, theirs *wired) {
	if w.recovered < 0 && !s.mayHang(w) {
		t.Errorf("%s holds\n  %v\nthe server\n  %v\nclient-go recovered after %v\nits health is %+v",
			w.name, w.cached(wireState), s.holds(t), theirs.recovered, w.health())
	}
	wrong := w.wrong()
	if s.mayBeFake(w) {
		wrong = slices.DeleteFunc(slices.Clone(wrong), func(event string) bool {
			return strings.HasPrefix(event, "delete ") && strings.HasSuffix(event, `known as ""`)
		})
	}
	if len(wrong) > 0 {
		t.Errorf("the handler of %s received events that do not follow from each other:\n  %s",
			w.name, strings.Join(wrong, "\n  "))
	}
	if held, cached := w.held(), w.cached(w.state); !maps.Equal(held, cached) {
		t.Errorf("the events of %s add up to %v, its cache holds %v", w.name, held, cached)
	}
}

// mayHang reports whether an informer waits for a list that it cannot end: client-go's client
// does not say what a list brings, so the two minutes of P15 do not hold for a ListerWatcher.
func (s *wireServer) mayHang(w *wired) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[w.name].hanging > 0 && w.name == "drop-in" && s.script.kind.name == ofProgram
}

// mayBeFake reports whether an informer takes the server for a fake, whose deletes of unknown
// objects it reports, as docs/differences.md has it.
func (s *wireServer) mayBeFake(w *wired) bool {
	return w.name == "drop-in" && s.script.lies() >= ofNumbers
}

// inStep reports whether a cache equals the state of the server. Unless a list was forced, it does not
// count objects that no writer has made.
func (s *wireServer) inStep(t *testing.T, w *wired) bool {
	cached := w.cached(wireState)
	if s.script.lies() < ofStates || !s.isHonest() {
		maps.DeleteFunc(cached, func(key, _ string) bool { return isOdd(key) })
	}
	return maps.Equal(cached, s.holds(t))
}

// holds returns the states on the server.
func (s *wireServer) holds(t *testing.T) map[string]string {
	objects, _, err := s.api.List(t.Context(), configMaps, "")
	must(t, err)
	states := map[string]string{}
	for _, obj := range objects {
		states[keyOf(obj)] = wireState(obj)
	}
	return states
}
