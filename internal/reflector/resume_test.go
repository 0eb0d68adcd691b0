package reflector

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// TestP01_GroupOfDeletesIsResumedFromBeforeIt has a server delete several objects at one
// version, as one does with events whose lease ends (kubernetes/kubernetes#110210), and the
// watch end after some of them.
func TestP01_GroupOfDeletesIsResumedFromBeforeIt(t *testing.T) {
	events := func(events ...source.Event[object]) read { return read{events: events} }
	a, b, c := event(source.Deleted, "a", "9"), event(source.Deleted, "b", "9"), event(source.Deleted, "c", "9")
	changed := event(source.Modified, "d", "7")
	for name, test := range map[string]struct {
		reads []read
		next  string // the next request
	}{
		"orderly end after the first": {[]read{events(changed, a), eof}, "watch 7"},
		"cut after the first":         {[]read{events(changed, a), {err: errCut}}, "watch 7"},
		"ERROR event after the first": {[]read{events(changed, a), {err: errInternal}}, "watch 7"},
		"in two batches":              {[]read{events(changed), events(a), events(b), {err: errCut}}, "watch 7"},
		"with nothing before":         {[]read{events(a, b), {err: errCut}}, "watch 5"},
		"after a bookmark":            {[]read{events(bookmark(source.Bookmark, "8"), a), {err: errCut}}, "watch 8"},
		"after another group":         {[]read{events(event(source.Deleted, "x", "6"), event(source.Deleted, "y", "6"), a, b), {err: errCut}}, "watch 6"},
		"closed by a bookmark":        {[]read{events(a, b), events(bookmark(source.Bookmark, "9")), {err: errCut}}, "watch 9"},
		"closed by a later bookmark":  {[]read{events(a, b), events(bookmark(source.Bookmark, "12")), {err: errCut}}, "watch 12"},
		"closed by a later version":   {[]read{events(a, b), events(event(source.Added, "a", "10")), {err: errCut}}, "watch 10"},
	} {
		t.Run(name, func(t *testing.T) {
			rest := answer{expect: test.next, reads: []read{events(a, b, c)}}
			run(t, []answer{listed(test.reads...), rest}, Options[object]{}, func(r *Reflector[object], s *script, j *journal) {
				time.Sleep(10 * time.Second)
				synctest.Wait()
				same(t, "requests", s.requests(), "stream", test.next)
				if text := strings.Join(j.read(), "; "); !strings.Contains(text, "delete c@9") {
					t.Errorf("the rest of the group was not handed on: %s", text)
				}
			})
		})
	}
}

// TestP01_GroupStaysOpenThroughSeveralWatches cuts every watch after one more of the group.
func TestP01_GroupStaysOpenThroughSeveralWatches(t *testing.T) {
	one := func(name string) read { return read{events: []source.Event[object]{event(source.Deleted, name, "9")}} }
	run(t, []answer{
		listed(one("a"), read{err: errCut}),
		{expect: "watch 5", reads: []read{one("a"), one("b"), {err: errCut}}},
		{expect: "watch 5", reads: []read{one("a"), one("b"), one("c"), {events: []source.Event[object]{bookmark(source.Bookmark, "9")}}, {err: errCut}}},
		{expect: "watch 9"},
	}, Options[object]{}, func(r *Reflector[object], s *script, _ *journal) {
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 5", "watch 5", "watch 9")
		if h := r.Health(); h.Version != "9" {
			t.Errorf("health is %+v", h)
		}
	})
}

// TestP16_RewindIsFoundBeforeAGroup resumes before a group at a server that was set back to a
// state between: it has the version that the watch begins at, not the one that was reached.
func TestP16_RewindIsFoundBeforeAGroup(t *testing.T) {
	for name, older := range map[string]source.Event[object]{
		"bookmark": bookmark(source.Bookmark, "6"), "event": event(source.Modified, "a", "6"),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, []answer{
				listed(read{events: []source.Event[object]{event(source.Deleted, "b", "9")}}, read{err: errCut}),
				{expect: "watch 5", reads: []read{{events: []source.Event[object]{older}}}},
				probed("7"), relisted,
			}, hour, func(_ *Reflector[object], _ *script, j *journal) {
				passTheWaits()
				entries := j.read()
				same(t, "the last of the queue", entries[len(entries)-1:], "replace 4 (new history true): b@2")
			})
		})
	}
}

// TestP16_LagBeforeAGroupIsNoRewind resumes before a group at one server of several, which
// lags, as the look at the version shows.
func TestP16_LagBeforeAGroupIsNoRewind(t *testing.T) {
	gone := event(source.Deleted, "a", "9")
	run(t, []answer{
		listed(read{events: []source.Event[object]{gone}}, read{err: errCut}),
		{expect: "watch 5", reads: []read{{events: []source.Event[object]{bookmark(source.Bookmark, "6")}}}},
		probed("9"),
		{expect: "watch 5", reads: []read{{events: []source.Event[object]{gone}}, {events: []source.Event[object]{bookmark(source.Bookmark, "12")}}}},
	}, hour, func(r *Reflector[object], _ *script, _ *journal) {
		passTheWaits()
		if h := r.Health(); h.Version != "12" || h.State != health.Watching || h.Lists != 1 {
			t.Errorf("health is %+v", h)
		}
	})
}

// TestP01_EventsOutOfOrderAfterAGroup resumes before a group. Events that a server sends after
// that in another order than that of their versions are no sign of a rewind.
func TestP01_EventsOutOfOrderAfterAGroup(t *testing.T) {
	gone := event(source.Deleted, "b", "9")
	run(t, []answer{
		listed(read{events: []source.Event[object]{gone}}, read{err: errCut}),
		{expect: "watch 5", reads: []read{
			{events: []source.Event[object]{gone, event(source.Added, "c", "12")}},
			{events: []source.Event[object]{event(source.Deleted, "a", "11"), bookmark(source.Bookmark, "12")}},
		}},
	}, hour, func(r *Reflector[object], _ *script, j *journal) {
		passTheWaits()
		entries := j.read()
		if last := entries[len(entries)-1]; !strings.Contains(last, "a@11") {
			t.Errorf("the last that the queue was given is %s, want the delete of a", last)
		}
		if h := r.Health(); h.Version != "12" || h.State != health.Watching || h.Lists != 1 {
			t.Errorf("health is %+v", h)
		}
	})
}

// TestP18_RetryAfterIsBounded has the server ask for decades, as an answer, in an event and
// between two pages.
func TestP18_RetryAfterIsBounded(t *testing.T) {
	decades := errTooMany(2147483647)
	ready := source.Page[object]{Version: "5", Continue: "next"}
	for name, answers := range map[string][]answer{
		"streamed list":        {{expect: "stream", err: decades}, listed()},
		"event while it lists": {{expect: "stream", reads: []read{{err: decades}}}, listed()},
		"watch":                {listed(read{err: errCut}), {expect: "watch 5", err: decades}, {expect: "watch 5"}},
		"event of a watch":     {listed(read{err: decades}), {expect: "watch 5"}},
		"first page":           {{expect: firstList, err: decades}, onePage(firstList), {expect: "watch 5"}},
		"second page":          {{expect: firstList, page: ready}, {expect: `list "0" 500 "next"`, err: decades}, onePage(`list "0" 500 "next"`), {expect: "watch 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options[object]{WatchTimeout: time.Hour, NoStreamedLists: strings.HasSuffix(name, "page")}
			run(t, answers, o, func(r *Reflector[object], s *script, _ *journal) {
				time.Sleep(time.Minute)
				synctest.Wait()
				h := r.Health()
				if h.State != health.Backoff || time.Until(h.RetryAt) > 5*time.Minute || !strings.Contains(h.LastError.Error(), "about 5m0s") {
					t.Errorf("while it waits health is %+v", h)
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if got, want := len(s.requests()), len(answers); h.State == health.Watching || got < want {
					t.Errorf("%d requests, want %d; health is %+v", got, want, r.Health())
				}
			})
		})
	}
}
