package reflector

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// hour is a timeout that no test of silence reaches.
var hour = Options[object]{WatchTimeout: time.Hour}

func bookmarkAfter(d time.Duration, version string) read {
	return read{after: d, events: []source.Event[object]{bookmark(source.Bookmark, version)}}
}

func TestP15_WatchThatIsQuietForSeveralOfItsPeriodsIsTornDown(t *testing.T) {
	run(t, []answer{
		listed(bookmarkAfter(time.Minute, "6"), bookmarkAfter(50*time.Second, "7"), bookmarkAfter(time.Minute, "8")),
		{expect: "watch 8", reads: []read{bookmarkAfter(time.Minute, "9")}},
		probed("8"),
	}, hour, func(r *Reflector[object], s *script, _ *journal) {
		time.Sleep(170*time.Second + 4*time.Minute - time.Second)
		synctest.Wait()
		same(t, "requests after four periods", s.requests(), "stream")
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 8", `list "" 1 ""`)
		if h := r.Health(); h.State != health.Watching || !errors.Is(h.LastError, errQuiet) {
			t.Errorf("health is %+v", h)
		}
		// What a watch has taught is not held against the next one.
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 8", `list "" 1 ""`)
	})
}

func TestP15_WatchThatKeepsItsPeriodIsLeftAlone(t *testing.T) {
	var reads []read
	for i := range 40 {
		after := time.Minute
		if i%10 == 9 {
			after = 3 * time.Minute // two of them gone missing
		}
		reads = append(reads, bookmarkAfter(after, fmt.Sprint(6+i)))
	}
	run(t, []answer{listed(reads...)}, hour, func(_ *Reflector[object], s *script, _ *journal) {
		time.Sleep(48 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream")
	})
}

func TestP15_BookmarksCloseTogetherAreNoPeriod(t *testing.T) {
	run(t, []answer{
		listed(bookmarkAfter(time.Second, "6"), bookmarkAfter(time.Millisecond, "7"), bookmarkAfter(29*time.Second, "8")),
	}, hour, func(_ *Reflector[object], s *script, _ *journal) {
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream")
	})
}

func TestP15_QueueThatIsFullIsNoSilence(t *testing.T) {
	run(t, []answer{
		listed(bookmarkAfter(time.Minute, "6"), bookmarkAfter(time.Minute, "7"),
			read{events: []source.Event[object]{event(source.Modified, "a", "8")}},
			bookmarkAfter(time.Minute, "9")),
	}, hour, func(_ *Reflector[object], s *script, j *journal) {
		j.mu.Lock()
		j.full = 20 * time.Minute
		j.mu.Unlock()
		time.Sleep(24 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream")
		same(t, "queue", j.read(), replaced, "bookmark 6", "bookmark 7", "push 8: set a@8", "bookmark 9")
	})
}

// probed is the list of one object that asks for the server's version.
func probed(version string) answer {
	return answer{expect: `list "" 1 ""`, page: source.Page[object]{Items: []source.Item[object]{item("a", "1")}, Version: version, Continue: "more"}}
}

func TestP16_WatchThatBroughtNothingIsDoubted(t *testing.T) {
	ends := map[string]read{
		"ended in order": {after: 5 * time.Minute, err: io.EOF},
		"outlived":       {after: 3 * time.Hour, err: io.EOF},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			run(t, []answer{
				listed(read{err: errCut}),
				{expect: "watch 5", reads: []read{end}},
				probed("5"),
				{expect: "watch 5", reads: []read{end}},
				probed("3"),
				{expect: "stream", reads: []read{{events: []source.Event[object]{event(source.Added, "b", "2"), bookmark(source.InitialEventsEnd, "4")}}}},
			}, hour, func(r *Reflector[object], s *script, j *journal) {
				for range 1000 {
					if len(s.requests()) == 6 {
						break
					}
					time.Sleep(time.Minute)
					synctest.Wait()
				}
				same(t, "requests", s.requests(), "stream", "watch 5", `list "" 1 ""`, "watch 5", `list "" 1 ""`, "stream")
				same(t, "queue", j.read(), replaced, "replace 4 (new history true): b@2")
				if h := r.Health(); h.Lists != 2 || !errors.Is(h.LastError, errRewound) {
					t.Errorf("health is %+v", h)
				}
			})
		})
	}
}

func TestP16_HistoryIsNewEvenIfTheServerHasCaughtUpMeanwhile(t *testing.T) {
	known := func(key string) (object, string, string, bool) {
		return object{name: key, note: " as known"}, "3", "uid-" + key, key == "a"
	}
	run(t, []answer{
		listed(read{err: errCut}),
		{expect: "watch 5", reads: []read{{after: 5 * time.Minute, err: io.EOF}}},
		probed("4"),
		{expect: "stream", reads: []read{{events: []source.Event[object]{event(source.Added, "a", "3"), bookmark(source.InitialEventsEnd, "7")}}}},
	}, Options[object]{WatchTimeout: time.Hour, Known: known}, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		// Version 3 of the new history is not what is known as version 3.
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known", "replace 7 (new history true): a@3")
	})
}

// refusedFor has so many attempts to watch in a row refused.
func refusedFor(n int, after ...read) []answer {
	answers := []answer{listed(append(after, read{err: errCut})...)}
	for range n {
		answers = append(answers, answer{expect: "watch 5", err: errRefused})
	}
	return answers
}

// TestP16_LongOutageIsDoubtedAndAShortOneIsNot has waits of 0.8, 1.6, 3.2 and 6.4 s between
// the attempts: how long an outage was shows when it is over, and not at the last failure.
func TestP16_LongOutageIsDoubtedAndAShortOneIsNot(t *testing.T) {
	t.Run("5.6 s", func(t *testing.T) {
		run(t, append(refusedFor(2), answer{expect: "watch 5"}), hour, func(_ *Reflector[object], s *script, _ *journal) {
			time.Sleep(time.Minute)
			synctest.Wait()
			same(t, "requests", s.requests(), "stream", "watch 5", "watch 5", "watch 5")
		})
	})
	t.Run("12 s, the last failure after 5.6", func(t *testing.T) {
		run(t, append(refusedFor(3), answer{expect: "watch 5"}, probed("9")), hour, func(_ *Reflector[object], s *script, _ *journal) {
			time.Sleep(time.Minute)
			synctest.Wait()
			same(t, "last requests", s.requests()[4:], "watch 5", `list "" 1 ""`)
		})
	})
}

// TestP16_OutageBeginsWithTheLastThatWasHeard has a connection break that brought nothing
// for a while: nobody knows what the server did meanwhile.
func TestP16_OutageBeginsWithTheLastThatWasHeard(t *testing.T) {
	cut := read{after: 50 * time.Second, err: errCut}
	run(t, []answer{listed(cut), {expect: "watch 5", reads: []read{bookmarkAfter(time.Second, "5")}}, probed("3"), relisted}, hour,
		func(_ *Reflector[object], s *script, j *journal) {
			time.Sleep(time.Minute)
			synctest.Wait()
			same(t, "requests", s.requests(), "stream", "watch 5", `list "" 1 ""`, "stream")
			same(t, "queue", j.read(), replaced, "replace 4 (new history true): b@2")
		})
}

// relisted is a streamed list of another object, at version 4.
var relisted = answer{expect: "stream", reads: []read{{events: []source.Event[object]{event(source.Added, "b", "2"), bookmark(source.InitialEventsEnd, "4")}}}}

// TestP16_WatchThatEndsInOrderIsContact has watches that bring a bookmark and are then idle
// until the server ends them: there is nothing to doubt.
func TestP16_WatchThatEndsInOrderIsContact(t *testing.T) {
	ended := []read{bookmarkAfter(time.Minute, "5"), {after: 4 * time.Minute, err: io.EOF}}
	run(t, []answer{listed(ended...), {expect: "watch 5", reads: ended}, {expect: "watch 5", reads: ended}}, hour,
		func(_ *Reflector[object], s *script, _ *journal) {
			time.Sleep(14 * time.Minute)
			synctest.Wait()
			same(t, "requests", s.requests(), "stream", "watch 5", "watch 5")
		})
}

// TestP16_RefusalsAreContactAndRegretsAreNot has the server, or what stands in front of it,
// answer with an error for a while.
func TestP16_RefusalsAreContactAndRegretsAreNot(t *testing.T) {
	const look = `list "" 1 ""`
	patient, refused := []string{"watch 5", "watch 5", "watch 5", "watch 5", "watch 5"}, []string{"watch 5", "watch 5", look, "watch 5", look}
	for name, test := range map[string]struct {
		err  error
		asks []string
		look bool
	}{"too many requests": {errTooMany(6), patient, false}, "forbidden": {errForbidden, refused, false}, "internal error": {errInternal, refused, true}} {
		t.Run(name, func(t *testing.T) {
			answers := []answer{listed(read{err: errCut})}
			for _, request := range test.asks {
				answers = append(answers, answer{expect: request, err: test.err})
			}
			answers = append(answers, answer{expect: "watch 5"})
			want := []string{"watch 5"}
			if test.look {
				answers, want = append(answers, probed("5")), append(want, look)
			}
			o := hour
			o.Backoff = Backoff{Max: 4 * time.Second}
			run(t, answers, o, func(_ *Reflector[object], s *script, _ *journal) {
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				same(t, "requests", s.requests()[6:], want...)
			})
		})
	}
}

// TestP16_LookThatFailsKeepsTheWatch has a server that can be watched and not listed: it is
// followed, and what the watch brings answers as well.
func TestP16_LookThatFailsKeepsTheWatch(t *testing.T) {
	look := answer{expect: `list "" 1 ""`, err: errInternal}
	answers := append(refusedFor(3), answer{expect: "watch 5", reads: []read{bookmarkAfter(time.Minute, "6"), {after: time.Second, err: errCut}}}, look,
		answer{expect: "watch 6"})
	run(t, answers, hour, func(r *Reflector[object], s *script, j *journal) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		same(t, "last requests", s.requests()[4:], "watch 5", `list "" 1 ""`, "watch 6")
		same(t, "queue", j.read(), replaced, "bookmark 6")
		if h := r.Health(); h.State != health.Watching {
			t.Errorf("health is %+v", h)
		}
	})
	t.Run("that brings nothing", func(t *testing.T) {
		answers := append(refusedFor(3), answer{expect: "watch 5", reads: []read{{after: time.Second, err: errCut}}}, look, probed("3"), relisted)
		run(t, answers, hour, func(_ *Reflector[object], s *script, _ *journal) {
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			same(t, "last requests", s.requests()[4:], "watch 5", `list "" 1 ""`, `list "" 1 ""`, "stream")
		})
	})
}

func TestP16_BookmarkFromBeforeTheWatchIsDoubted(t *testing.T) {
	run(t, []answer{
		listed(read{events: []source.Event[object]{bookmark(source.Bookmark, "4"), event(source.Modified, "a", "6")}}),
		probed("4"),
		{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "4")}}}},
	}, hour, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), replaced, "push 6: set a@6", "replace 4 (new history true):")
	})
}

// TestP16_EventFromBeforeTheWatchIsDoubted has the version that a watch stands at go back with
// an event: the server was set back and sends what it changes now, or one event before had a
// version that was too high. What the cache has of that is newer than anything to come.
func TestP16_EventFromBeforeTheWatchIsDoubted(t *testing.T) {
	end := read{after: 5 * time.Minute, err: io.EOF}
	for name, reads := range map[string][]read{
		"set back": {{events: []source.Event[object]{event(source.Modified, "a", "3")}},
			{events: []source.Event[object]{bookmark(source.Bookmark, "4")}}, end},
		"too high": {{events: []source.Event[object]{event(source.Modified, "a", "99999"), event(source.Modified, "b", "6")}},
			{events: []source.Event[object]{bookmark(source.Bookmark, "7")}}, end},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, []answer{
				listed(reads...),
				probed("4"),
				{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "4")}}}},
			}, hour, func(_ *Reflector[object], _ *script, j *journal) {
				time.Sleep(6 * time.Minute)
				synctest.Wait()
				entries := j.read()
				same(t, "the last of the queue", entries[len(entries)-1:], "replace 4 (new history true):")
			})
		})
	}
}

// TestP16_EventsOutOfOrderAreNotDoubted has a server send events in another order than that
// of their versions, and reach the highest again.
func TestP16_EventsOutOfOrderAreNotDoubted(t *testing.T) {
	run(t, []answer{
		listed(read{events: []source.Event[object]{event(source.Modified, "a", "9"), event(source.Modified, "b", "8")}},
			read{events: []source.Event[object]{bookmark(source.Bookmark, "10")}}, read{after: 5 * time.Minute, err: io.EOF}),
		{expect: "watch 10"},
	}, hour, func(_ *Reflector[object], s *script, _ *journal) {
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 10")
	})
}

func TestP16_VersionsThatAreNoNumbersAreNotDoubted(t *testing.T) {
	run(t, []answer{
		{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "five")}}, {err: errCut}}},
		{expect: "watch five", reads: []read{{after: 5 * time.Minute, err: io.EOF}}},
		{expect: "watch five"},
	}, hour, func(_ *Reflector[object], s *script, _ *journal) {
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch five", "watch five")
	})
}

func TestP16_LookThatIsNotAnsweredIsTakenAgain(t *testing.T) {
	run(t, []answer{
		listed(read{err: errCut}),
		{expect: "watch 5", reads: []read{{after: 5 * time.Minute, err: io.EOF}}},
		{expect: `list "" 1 ""`, hang: true},
		probed("5"),
		{expect: "watch 5"},
	}, hour, func(r *Reflector[object], s *script, _ *journal) {
		time.Sleep(5*time.Minute + 10*time.Second)
		synctest.Wait()
		same(t, "requests before the time is up", s.requests(), "stream", "watch 5", `list "" 1 ""`)
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 5", `list "" 1 ""`, `list "" 1 ""`, "watch 5")
		if err := r.Health().LastError; !errors.Is(err, errUnanswered) {
			t.Errorf("the last error is %v", err)
		}
	})
}

func TestP16_OutagesAreNotAddedUp(t *testing.T) {
	answers := append(refusedFor(2), answer{expect: "watch 5", reads: []read{bookmarkAfter(time.Second, "6"), {err: errCut}}},
		answer{expect: "watch 6", err: errRefused}, answer{expect: "watch 6", err: errRefused}, answer{expect: "watch 6"})
	run(t, answers, hour, func(_ *Reflector[object], s *script, _ *journal) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests()[3:], "watch 5", "watch 6", "watch 6", "watch 6")
	})
}

// TestP1_LookThatAlwaysFailsDoesNotEndTheWatching has servers that can be watched and not
// listed, after a watch that brought nothing: the next watch begins after a few looks.
func TestP1_LookThatAlwaysFailsDoesNotEndTheWatching(t *testing.T) {
	for name, err := range map[string]error{
		"refused":   errForbidden,
		"failing":   errInternal,
		"malformed": status(500, metav1.StatusReasonStoreReadError),
	} {
		t.Run(name, func(t *testing.T) {
			look := answer{expect: `list "" 1 ""`, err: err}
			run(t, []answer{
				listed(read{err: errCut}),
				{expect: "watch 5", reads: []read{{after: 5 * time.Minute, err: io.EOF}}},
				look, look, look,
				{expect: "watch 5", reads: []read{{after: time.Second, events: []source.Event[object]{event(source.Added, "b", "6")}}}},
				look,
			}, hour, func(r *Reflector[object], _ *script, j *journal) {
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				same(t, "queue", j.read(), replaced, "push 6: set b@6")
				if h := r.Health(); h.State != health.Watching {
					t.Errorf("health is %+v", h)
				}
			})
		})
	}
}
