package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

const replaced = "replace 5 (new history false): a@3"

func TestStreamedListGoesOnAsTheWatch(t *testing.T) {
	stream := answer{expect: "stream", reads: []read{
		{events: []source.Event[object]{event(source.Added, "a", "3"), event(source.Added, "b", "1")}},
		{events: []source.Event[object]{event(source.Deleted, "b", "1"), event(source.Added, "c", "4"),
			bookmark(source.InitialEventsEnd, "5"), event(source.Modified, "a", "6")}},
		{events: []source.Event[object]{bookmark(source.Bookmark, "9")}},
	}}
	run(t, []answer{stream}, Options[object]{}, func(r *Reflector[object], s *script, j *journal) {
		same(t, "requests", s.requests(), "stream")
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 c@4", "push 6: set a@6", "bookmark 9")
		h := r.Health()
		if h.State != health.Watching || h.Version != "9" || h.Lists != 1 || h.Listed != 0 {
			t.Errorf("health is %+v", h)
		}
	})
}

func TestRefusedStreamedListIsReadInPages(t *testing.T) {
	run(t, []answer{
		{expect: "stream", err: source.ErrStreamedListRefused},
		{expect: `list "0" 500 ""`, page: source.Page[object]{Items: []source.Item[object]{item("a", "3")}, Version: "5", Continue: "next"}},
		{expect: `list "0" 500 "next"`, page: source.Page[object]{Items: []source.Item[object]{item("b", "4")}, Version: "8"}},
		{expect: "watch 5", reads: []read{{err: errExpired}}},
		{expect: `list "" 500 ""`, page: source.Page[object]{Version: "20"}},
		{expect: "watch 20"},
	}, Options[object]{}, func(_ *Reflector[object], s *script, j *journal) {
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 b@4", "replace 20 (new history false):")
		if len(s.requests()) != 6 {
			t.Errorf("requests: %q", s.requests())
		}
	})
}

func TestExpiredTokenListsAgainWithoutPages(t *testing.T) {
	run(t, []answer{
		{expect: `list "0" 2 ""`, page: source.Page[object]{Items: []source.Item[object]{item("a", "3")}, Version: "5", Continue: "next"}},
		{expect: `list "0" 2 "next"`, err: errExpired},
		{expect: `list "0" 0 ""`, page: source.Page[object]{Items: []source.Item[object]{item("a", "7"), item("b", "8")}, Version: "9"}},
		{expect: "watch 9"},
	}, Options[object]{NoStreamedLists: true, PageSize: 2}, func(_ *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), "replace 9 (new history false): a@7 b@8")
	})
}

func TestStreamedListThatBreaksTwiceIsReadInPagesOnce(t *testing.T) {
	broken := answer{expect: "stream", reads: []read{{events: []source.Event[object]{event(source.Added, "a", "3")}}, {err: errCut}}}
	run(t, []answer{
		broken, broken,
		{expect: `list "0" 500 ""`, page: source.Page[object]{Items: []source.Item[object]{item("a", "3")}, Version: "5"}},
		{expect: "watch 5", reads: []read{{err: errExpired}}},
		{expect: "stream"},
	}, Options[object]{}, func(r *Reflector[object], s *script, j *journal) {
		time.Sleep(10 * time.Second) // virtual: over both waits
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "stream", `list "0" 500 ""`, "watch 5", "stream")
		same(t, "queue", j.read(), "replace 5 (new history false): a@3")
		if err := r.Health().LastError; !source.IsExpired(err) {
			t.Errorf("the last error is %v", err)
		}
	})
}

func TestP18_WatchResumesFromTheLastVersion(t *testing.T) {
	tests := map[string]struct {
		end  read
		wait time.Duration // virtual
	}{
		"orderly end of a short watch that brought something": {eof, 800 * time.Millisecond},
		"connection cut": {read{err: errCut}, 800 * time.Millisecond},
		"server error":   {read{err: errInternal}, 800 * time.Millisecond},
		"forbidden":      {read{err: errForbidden}, 800 * time.Millisecond},
		"Retry-After":    {read{err: errTooMany(7)}, 7 * time.Second},
		"cannot decode":  {read{err: errDecoding}, 800 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, []answer{
				listed(read{events: []source.Event[object]{event(source.Modified, "a", "7")}}, test.end),
				{expect: "watch 7"},
			}, Options[object]{}, func(_ *Reflector[object], s *script, j *journal) {
				time.Sleep(test.wait - time.Millisecond)
				synctest.Wait()
				same(t, "requests before the wait is over", s.requests(), "stream")
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				same(t, "requests", s.requests(), "stream", "watch 7")
				same(t, "queue", j.read(), replaced, "push 7: set a@7")
			})
		})
	}
}

func TestP18_ExpiredVersionListsAfterAMoment(t *testing.T) {
	run(t, []answer{
		listed(read{err: errExpired}),
		{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "9")}}}},
	}, Options[object]{}, func(r *Reflector[object], s *script, j *journal) {
		same(t, "requests", s.requests(), "stream")
		if h := r.Health(); h.State != health.Listing || h.Failures != 0 {
			t.Errorf("health is %+v", h)
		}
		time.Sleep(800 * time.Millisecond)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "stream")
		same(t, "queue", j.read(), replaced, "replace 9 (new history false):")
	})
}

func TestP18_ExpiredAgainAndAgainIsPolite(t *testing.T) {
	var answers []answer
	for range 20 {
		answers = append(answers, listed(read{err: errExpired}))
	}
	run(t, answers, Options[object]{}, func(_ *Reflector[object], s *script, _ *journal) {
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d lists at once, want the first", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(s.requests()); n > 8 {
			t.Errorf("%d lists in a minute", n)
		}
	})
}

func TestP18_UndecodableTwiceAtOneVersionLists(t *testing.T) {
	run(t, []answer{
		listed(read{err: errDecoding}),
		{expect: "watch 5", reads: []read{{err: errDecoding}}},
		{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "9")}}}},
	}, Options[object]{}, func(_ *Reflector[object], s *script, j *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "requests", s.requests(), "stream", "watch 5", "stream")
		same(t, "queue", j.read(), replaced, "replace 9 (new history false):")
	})
}

func TestP13_StateSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		err   error
		want  health.State
		pages bool // a streamed list that is refused twice is read in pages
	}{
		"forbidden":         {errForbidden, health.Forbidden, true},
		"unauthorized":      {status(401, "Unauthorized"), health.Forbidden, true},
		"no such resource":  {errNotFound, health.NoSuchResource, false},
		"wrong scope":       {&source.Error{Op: "list", Phase: source.Connecting, Err: source.ErrWrongScope}, health.NoSuchResource, false},
		"server error":      {errInternal, health.Backoff, true},
		"too many requests": {errTooMany(0), health.Backoff, false},
		"unreachable":       {errRefused, health.Backoff, false},
		"connection broken": {errCut, health.Backoff, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answers := []answer{{expect: "stream", err: test.err}, {expect: "stream", err: test.err}, listed()}
			if test.pages {
				answers = append(answers[:2], onePage(firstList), answer{expect: "watch 5"})
			}
			run(t, answers, Options[object]{}, func(r *Reflector[object], _ *script, j *journal) {
				h := r.Health()
				if h.State != test.want || !errors.Is(h.LastError, test.err) || h.Failures != 1 || !h.RetryAt.Equal(time.Now().Add(800*time.Millisecond)) {
					t.Errorf("health is %+v, want state %s", h, test.want)
				}
				time.Sleep(800 * time.Millisecond)
				synctest.Wait()
				if h := r.Health(); h.Failures != 2 || !h.RetryAt.Equal(time.Now().Add(1600*time.Millisecond)) {
					t.Errorf("after the second failure health is %+v", h)
				}
				time.Sleep(1600 * time.Millisecond)
				synctest.Wait()
				if h := r.Health(); h.State != health.Watching || h.Failures != 0 || h.LastError == nil || !h.RetryAt.IsZero() {
					t.Errorf("after it has healed health is %+v", h)
				}
				same(t, "queue", j.read(), replaced)
			})
		})
	}
}

func TestVanishedResourceIsListedWhenItIsBack(t *testing.T) {
	run(t, []answer{
		listed(read{err: errCut}),
		{expect: "watch 5", err: errNotFound},
		{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "2")}}}},
	}, Options[object]{}, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), replaced, "replace 2 (new history true):")
	})
}

func TestP15_WatchThatOutlivesItsTimeoutIsTornDown(t *testing.T) {
	run(t, []answer{listed(), {expect: "watch 5"}, probed("5")}, Options[object]{WatchTimeout: time.Minute, Grace: 10 * time.Second},
		func(r *Reflector[object], s *script, _ *journal) {
			time.Sleep(59 * time.Second)
			synctest.Wait()
			same(t, "requests within the timeout", s.requests(), "stream")
			time.Sleep(72 * time.Second)
			synctest.Wait()
			same(t, "requests", s.requests(), "stream", "watch 5", `list "" 1 ""`)
			if h := r.Health(); h.State != health.Watching || !errors.Is(h.LastError, errOutlived) {
				t.Errorf("health is %+v", h)
			}
		})
}

func TestP18_VersionThatTheServerCallsInvalidTwiceIsListed(t *testing.T) {
	invalid := answer{expect: "watch 5", err: status(422, "Invalid")}
	run(t, []answer{
		listed(read{err: errCut}), invalid, invalid,
		{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "2")}}}},
	}, Options[object]{}, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), replaced, "replace 2 (new history true):")
	})
}

func TestWithoutVersionsAnEndedWatchListsAgain(t *testing.T) {
	run(t, []answer{
		{expect: "stream", reads: []read{{events: []source.Event[object]{event(source.Added, "a", ""), bookmark(source.InitialEventsEnd, "")}}, eof}},
		{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "")}}}},
	}, Options[object]{}, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), "replace  (new history false): a@", "replace  (new history false):")
	})
}

func TestWithoutVersionsTheWatchAfterAListBeginsNow(t *testing.T) {
	run(t, []answer{
		{expect: `list "0" 500 ""`, page: source.Page[object]{Items: []source.Item[object]{item("a", "")}}},
		{expect: "watch ", reads: []read{{events: []source.Event[object]{event(source.Modified, "a", "")}}, {err: errCut}}},
		{expect: `list "" 500 ""`, page: source.Page[object]{Items: []source.Item[object]{item("a", "")}}},
		{expect: "watch "},
	}, Options[object]{NoStreamedLists: true}, func(_ *Reflector[object], s *script, j *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), "replace  (new history false): a@", "push : set a@", "replace  (new history false): a@")
		if n := len(s.requests()); n != 4 {
			t.Errorf("%d requests: %q", n, s.requests())
		}
	})
}

func TestP20_WrongObjectsAreDroppedAndCounted(t *testing.T) {
	wrong := source.Event[object]{Type: source.Added, Item: source.Item[object]{Err: &source.WrongObjectError{Got: "v1 Pod", Want: "v1 Thing"}}}
	known := func(key string) (object, string, string, bool) {
		return object{name: key, note: " as known"}, "3", "uid-" + key, key == "a"
	}
	accept := func(i source.Item[object], deleted bool) error {
		if !deleted && i.Version >= "6" {
			return errors.New("it does not belong here")
		}
		return nil
	}
	run(t, []answer{{expect: "stream", reads: []read{
		{events: []source.Event[object]{wrong, event(source.Added, "a", "3"), event(source.Added, "x", "6"), bookmark(source.InitialEventsEnd, "6")}},
		{events: []source.Event[object]{event(source.Modified, "x", "7"), wrong, event(source.Modified, "a", "8")}},
	}}}, Options[object]{Accept: accept, Known: known}, func(r *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), "replace 6 (new history false): a@3 as known", "push 8: gone x@7 gone a@8")
		h := r.Health()
		if h.Dropped != 5 || h.LastDropped == nil || !strings.Contains(h.LastDropped.Error(), "object a: it does not belong here") {
			t.Errorf("dropped %d, the last: %v", h.Dropped, h.LastDropped)
		}
	})
}

func TestP11_FailedTransformLeavesThePreviousState(t *testing.T) {
	transform := func(o object) (object, error) {
		switch o.version {
		case "3", "7":
			o.note = " small"
			return o, nil
		case "6":
			panic("I cannot bear it")
		default:
			return o, errors.New("it is odd")
		}
	}
	known := func(key string) (object, string, string, bool) {
		return object{name: key, note: " as known"}, "2", "uid-" + key, key == "a"
	}
	run(t, []answer{{expect: "stream", reads: []read{
		{events: []source.Event[object]{event(source.Added, "a", "4"), event(source.Added, "b", "4"), event(source.Added, "c", "3"), bookmark(source.InitialEventsEnd, "5")}},
		{events: []source.Event[object]{event(source.Modified, "c", "6"), event(source.Modified, "c", "7"), event(source.Deleted, "a", "8"), event(source.Deleted, "b", "9")}},
	}}}, Options[object]{Transform: transform, Known: known}, func(r *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), "replace 5 (new history false, a b stay): c@3 small", "push 9: set c@7 small gone a@8 gone b@9")
		h := r.Health()
		if h.TransformErrors != 5 || h.LastTransformError == nil || !strings.Contains(h.LastTransformError.Error(), "transform of b") {
			t.Errorf("%d transform errors, the last: %v", h.TransformErrors, h.LastTransformError)
		}
	})
}

func TestListStagesTheKnownObjectWhenItIsTheSame(t *testing.T) {
	known := func(key string) (object, string, string, bool) {
		return object{name: key, note: " as known"}, "3", "uid-" + key, true
	}
	transform := func(o object) (object, error) {
		o.note = " transformed"
		return o, nil
	}
	run(t, []answer{{expect: "stream", reads: []read{
		{events: []source.Event[object]{event(source.Added, "a", "3"), event(source.Added, "b", "4"), bookmark(source.InitialEventsEnd, "5")}},
	}}}, Options[object]{Known: known, Transform: transform}, func(_ *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known b@4 transformed")
	})
}

func TestP16_RewoundServerIsListedWithoutTheCache(t *testing.T) {
	known := func(key string) (object, string, string, bool) {
		return object{name: key, note: " as known"}, "3", "uid-" + key, key == "a"
	}
	rewound := answer{expect: "stream", reads: []read{
		{events: []source.Event[object]{event(source.Added, "a", "3"), event(source.Added, "b", "2"), bookmark(source.InitialEventsEnd, "4")}},
	}}
	run(t, []answer{listed(read{err: errExpired}), rewound, rewound}, Options[object]{Known: known}, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), "replace 5 (new history false): a@3 as known", "replace 4 (new history true): a@3 b@2")
	})
}

func TestRefusedReplaceIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{
			{expect: `list "0" 500 ""`, page: source.Page[object]{Version: "5"}},
			{expect: `list "" 500 ""`, page: source.Page[object]{Version: "7"}},
			{expect: "watch 7"},
		}}
		j := &journal{refuse: delta.ErrOlder}
		r := New(s, j, Options[object]{Name: "things.v1", NoStreamedLists: true})
		go r.Run(t.Context()) //nolint:errcheck // the bubble ends it
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "queue", j.read(), "replace 5 (new history false):", "replace 7 (new history false):")
	})
}

// TestP16_ReflectorThatTakesAnothersPlaceFindsARewind has a queue that has reached a newer
// version with an earlier reflector, and a server that was set back meanwhile.
func TestP16_ReflectorThatTakesAnothersPlaceFindsARewind(t *testing.T) {
	page := func(version string) answer {
		return answer{expect: fmt.Sprintf("list %q 500 \"\"", version), page: source.Page[object]{Version: "5"}}
	}
	for name, c := range map[string]struct {
		paged   bool
		answers []answer
		want    []string
	}{
		"streamed": {false, []answer{listed(), listed()}, []string{"replace 5 (new history false): a@3", "replace 5 (new history true): a@3"}},
		"in pages": {true, []answer{page("0"), page(""), page(""), {expect: "watch 5"}},
			[]string{"replace 5 (new history false):", "replace 5 (new history false):", "replace 5 (new history true):"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{older: true}
				r := New(&script{t: t, answers: c.answers}, j, Options[object]{Name: "things.v1", NoStreamedLists: c.paged})
				go r.Run(t.Context()) //nolint:errcheck // the bubble ends it
				time.Sleep(10 * time.Second)
				synctest.Wait()
				same(t, "queue", j.read(), c.want...)
			})
		})
	}
}

func TestP20_RunTwiceIsAnError(t *testing.T) {
	run(t, []answer{listed()}, Options[object]{}, func(r *Reflector[object], _ *script, j *journal) {
		if err := r.Run(t.Context()); !errors.Is(err, ErrRanAlready) || !strings.Contains(err.Error(), "things.v1") {
			t.Errorf("the second Run returned %v", err)
		}
		same(t, "queue", j.read(), replaced)
	})
}

// lines is a log handler that keeps the messages.
type lines struct {
	mu   sync.Mutex
	kept []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "state" || a.Key == "after" {
			text += " " + a.Value.String()
		}
		return true
	})
	l.kept = append(l.kept, text)
	return nil
}

func TestP18_LastingFailureIsLoggedOncePerStateAndAtAHeartbeat(t *testing.T) {
	var answers []answer
	for range 60 {
		answers = append(answers, answer{expect: firstList, err: errForbidden})
	}
	answers = append(answers, answer{expect: firstList, err: errInternal}, onePage(firstList))
	log := &lines{}
	o := Options[object]{NoStreamedLists: true, WatchTimeout: time.Hour, Logger: slog.New(log), Heartbeat: 10 * time.Minute, Backoff: Backoff{Max: 30 * time.Second}}
	run(t, answers, o, func(_ *Reflector[object], _ *script, _ *journal) {
		time.Sleep(35 * time.Minute)
		synctest.Wait()
		log.mu.Lock()
		defer log.mu.Unlock()
		if n := len(log.kept); n < 4 || n > 6 {
			t.Errorf("%d lines in half an hour of failure: %q", n, log.kept)
		}
		same(t, "log", []string{log.kept[0], log.kept[len(log.kept)-2]},
			"list and watch failed Forbidden", "list and watch failed Backoff")
		if last := log.kept[len(log.kept)-1]; !strings.HasPrefix(last, "list and watch recovered 2") {
			t.Errorf("the last line is %q, want the recovery after more than 20 minutes", last)
		}
	})
}
