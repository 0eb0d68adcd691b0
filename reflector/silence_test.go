package reflector

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

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
	}, hour, func(r *Reflector[object], s *script, _ *journal) {
		time.Sleep(170*time.Second + 4*time.Minute - time.Second)
		synctest.Wait()
		same(t, "requests after four periods", s.requests(), "stream")
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 8")
		if h := r.Health(); h.State != Watching || !errors.Is(h.LastError, errQuiet) {
			t.Errorf("health is %+v", h)
		}
		// What a watch has taught is not held against the next one.
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 8")
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

func TestP16_LongOutageIsDoubtedAndAShortOneIsNot(t *testing.T) {
	refused := func(n int) []answer {
		answers := []answer{listed(read{err: errCut})}
		for range n {
			answers = append(answers, answer{expect: "watch 5", err: errRefused})
		}
		return answers
	}
	t.Run("short", func(t *testing.T) {
		run(t, append(refused(3), answer{expect: "watch 5"}), hour, func(_ *Reflector[object], s *script, _ *journal) {
			time.Sleep(time.Minute)
			synctest.Wait()
			same(t, "last request", s.requests()[4:], "watch 5")
		})
	})
	t.Run("long", func(t *testing.T) {
		answers := append(refused(4), answer{expect: `list "" 1 ""`, err: errRefused}, probed("9"), answer{expect: "watch 5"})
		run(t, answers, hour, func(_ *Reflector[object], s *script, _ *journal) {
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			same(t, "last requests", s.requests()[5:], `list "" 1 ""`, `list "" 1 ""`, "watch 5")
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
	run(t, []answer{
		listed(read{err: errCut}),
		{expect: "watch 5", err: errRefused},
		{expect: "watch 5", reads: []read{bookmarkAfter(time.Minute, "6"), {err: errCut}}},
		{expect: "watch 6", err: errRefused},
		{expect: "watch 6"},
	}, hour, func(_ *Reflector[object], s *script, _ *journal) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 5", "watch 5", "watch 6", "watch 6")
	})
}
