package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// quiet5 is a watch that brings nothing until the server ends it.
var quiet5 = watched("5", failsAfter(time.Minute, io.EOF))

// refusedFor has a number of attempts to watch in a row refused. The waits between them are
// 0.8, 1.6, 3.2 and 6.4 s.
func refusedFor(n int) []answer {
	return append([]answer{listed(fails(errCut))}, slices.Repeat([]answer{failed("watch 5", errRefused)}, n)...)
}

// TestP16_Rewinds has the server set back to an older state, or look like it.
func TestP16_Rewinds(t *testing.T) {
	cut := fails(errCut)
	outlived := watched("5", failsAfter(90*time.Minute, io.EOF)) // and twice that is the longest
	failing, undecodable := failed(look, errInternal), failed(look, errDecoding)
	deleted := listed(sends("-b@9"), cut)
	inOrder := []read{sendsAfter(time.Minute, "*5"), failsAfter(4*time.Minute, io.EOF)}
	// A version of the new history is not the same version of the old one.
	known := Options[object]{Known: knows("a@3")}
	scenarios(t, map[string]scenario{
		"list of a lower version": {
			o: known, answers: []answer{listed(fails(errExpired)), streamed(sends("+a@3 +b@2 =4")), streamed(sends("+a@3 +b@2 =4"))},
			queue: []string{"replace 5: a@3 as known", "replace 4, new history: a@3 b@2"},
		},
		"list of a lower version, whose objects are cached": {
			asks: true, o: known, answers: []answer{listed(fails(errExpired)), streamed(sends("+a@3 +b@2 =4")), streamed(sends("+a@3 +b@2 =4"))},
			queue: []string{"replace 5: a@3 as known", "replace 4, new history: a@3 b@2"},
			check: func(t *testing.T, _ *Reflector[object], s *script, _ *journal) {
				same(t, "cached", s.cached, "a@3") // of the list that found the rewind, and not of the next
			},
		},
		"vanished resource": {
			answers: []answer{listed(cut), failed("watch 5", errNotFound), streamed(sends("=2"))},
			queue:   []string{replaced5, "replace 2, new history:"},
		},
		"quiet watch that ended": {
			answers: []answer{listed(cut), quiet5, checked("5"), quiet5, checked("3"), relisted4},
			queue:   []string{replaced5, rewound4},
			check: unless(func(h health.Watch) bool {
				return h.Lists != 2 || !errors.Is(h.LastError, errRewound)
			}),
		},
		"quiet watch that outlived its timeout": {
			o:       Options[object]{Transport: source.Transport{WatchTimeout: 30 * time.Minute}},
			answers: []answer{listed(cut), outlived, checked("5"), outlived, checked("3"), relisted4},
			pass:    time.Minute, queue: []string{replaced5, rewound4},
			during: func(_ *Reflector[object], s *script) {
				for range 130 {
					if len(s.requests()) < 6 {
						after(time.Minute)
					}
				}
			},
		},
		"caught up meanwhile": {
			o: known, answers: []answer{listed(cut), quiet5, checked("4"), streamed(sends("+a@3 =7"))},
			during: func(_ *Reflector[object], s *script) {
				after(time.Minute + time.Second) // the list follows at once
				same(t, "requests", s.requests(), "stream", "watch 5", look, "stream")
			},
			queue: []string{"replace 5: a@3 as known", "replace 7, new history: a@3"},
		},
		"outage of 5.6 s": {answers: append(refusedFor(2), watched("5"))},
		// How long an outage was shows at its end, not at the last failure, which is after 5.6 s.
		"outage of 12 s": {answers: append(refusedFor(3), watched("5"), checked("9"))},
		// A watch that begins soon after an end out of order is followed by a check when it brings a
		// bookmark, whatever it brings before, or ends in order.
		"outages of 5.6 s": {answers: append(refusedFor(2), watched("5", sendsAfter(time.Second, "*6"), cut), checked("6"),
			failed("watch 6", errRefused), failed("watch 6", errRefused), watched("6"))},
		"outage of a moment, and a backup": {
			answers: []answer{listed(failsAfter(time.Second, errCut)), watched("5", sendsAfter(time.Minute, "*6")), page(look, "6", "+a@2", ""), relisted4},
			queue:   []string{replaced5, "bookmark 6", rewound4},
		},
		"two cuts, and a backup": {
			answers: []answer{
				listed(failsAfter(time.Second, errCut)), watched("5", failsAfter(5*time.Second, errCut)),
				watched("5", sends("~b@7"), sendsAfter(time.Minute, "*8")), page(look, "8", "", ""), relisted4,
			},
			queue: []string{replaced5, "push 7: set b@7", "bookmark 8", rewound4},
		},
		"outage of a moment, and a watch that ends in order": {
			answers: []answer{listed(failsAfter(time.Second, errCut)), watched("5", sendsAfter(time.Second, "~b@7"), eof), checked("3"), relisted4},
			queue:   []string{replaced5, "push 7: set b@7", rewound4},
		},
		// It is not known whether the server went back while a connection was quiet that then
		// broke.
		"outage since the last event": {
			answers: []answer{listed(failsAfter(50*time.Second, errCut)), watched("5", sendsAfter(time.Second, "*5")), checked("3"), relisted4},
			queue:   []string{replaced5, rewound4},
		},
		"watches that end in order are contact": {
			answers: []answer{listed(inOrder...), watched("5", inOrder...), watched("5", inOrder...)}, pass: 14 * time.Minute,
		},
		"check that fails": { // the watch is followed, and the check is made again
			answers: append(refusedFor(3), watched("5", sendsAfter(29*time.Second, "*6"), sendsAfter(29*time.Second, "*7"), sendsAfter(time.Second, "*8"), failsAfter(time.Second, errCut)),
				failing, checked("8"), watched("8")),
			queue: []string{replaced5, "bookmark 6", "bookmark 7", "bookmark 8"},
			check: unless(func(h health.Watch) bool {
				return h.State != health.StateWatching
			}),
		},
		"check that fails, watch that brings nothing": {
			answers: append(refusedFor(3), watched("5", failsAfter(time.Second, errCut)), failing, checked("3"), relisted4),
		},
		"check that fails, watch that ends soon": {
			answers: append(refusedFor(3), watched("5", sendsAfter(time.Second, "*6"), failsAfter(time.Second, errCut)), failing, checked("3"), relisted4),
			queue:   []string{replaced5, "bookmark 6", rewound4},
		},
		"check that finds no resource": {
			answers: append(refusedFor(3), watched("5"), failed(look, errNotFound), listed9),
			queue:   []string{replaced5, replaced9},
		},
		"check that is not answered": {
			answers: []answer{listed(cut), quiet5, {expect: look, hang: true}, checked("5"), watched("5")},
			during: func(_ *Reflector[object], s *script) {
				after(time.Minute + 10*time.Second)
				same(t, "requests before the time is up", s.requests(), "stream", "watch 5", look)
			},
			check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
				if err := r.Health().LastError; !errors.Is(err, errUnanswered) {
					t.Errorf("the last error is %v", err)
				}
			},
		},
		"check that is not answered before the end of Run": {
			answers: append(refusedFor(3), watched("5"), answer{expect: look, hang: true}), pass: 20 * time.Second,
		},
		// It is not made twice at once.
		"check of an empty collection that cannot be decoded": {
			answers: []answer{streamed(sends("=5"), cut), quiet5, undecodable, undecodable, undecodable, watched("5"), undecodable},
			pass:    2 * time.Minute,
		},
		"older bookmark": {
			answers: []answer{listed(sends("*4 ~a@6")), checked("4"), streamed(sends("=4"))},
			queue:   []string{replaced5, "push 6: set a@6", "replace 4, new history:"},
		},
		// The server sends its present changes, or one event had a version that was too high.
		"older event": {
			answers: []answer{listed(sends("~a@3"), sends("*4"), failsAfter(time.Minute, io.EOF)), checked("4"), streamed(sends("=4"))},
			queue:   []string{replaced5, "push 3: set a@3", "bookmark 4", "replace 4, new history:"},
		},
		"event of too high a version": {
			answers: []answer{listed(sends("~a@99999 ~b@6"), sends("*7"), failsAfter(time.Minute, io.EOF)), checked("4"), streamed(sends("=4"))},
			queue:   []string{replaced5, "push 6: set a@99999 set b@6", "bookmark 7", "replace 4, new history:"},
		},
		"events out of order": {answers: []answer{listed(sends("~a@9 ~b@8"), sends("*10"), failsAfter(time.Minute, io.EOF)), watched("10")}},
		"versions that are no numbers": {
			answers: []answer{streamed(sends("=five"), cut), watched("five", failsAfter(time.Minute, io.EOF)), watched("five")},
		},
		// A watch resumes before a group of deletes. The server has the version that it begins at,
		// and not the one that was reached.
		"older bookmark, before a group": {answers: []answer{deleted, watched("5", sends("*6")), checked("7"), relisted4},
			queue: []string{replaced5, "push 9: delete b@9", "bookmark 9", rewound4}},
		"older event, before a group": {answers: []answer{deleted, watched("5", sends("~a@6")), checked("7"), relisted4},
			queue: []string{replaced5, "push 9: delete b@9", "bookmark 9", rewound4}},
		"one server of several lags, before a group": {
			answers: []answer{deleted, watched("5", sends("*6")), checked("9"), watched("5", sends("-b@9"), sends("*12"))},
			check: unless(func(h health.Watch) bool {
				return h.Version != "12" || h.State != health.StateWatching || h.Lists != 1
			}),
		},
		"version that the server never reaches": { // no watch from it is ever begun
			answers: []answer{listed(sends("*18446744073709551615"), cut), failed("watch 18446744073709551615", errTimeout),
				failed("watch 18446744073709551615", errTimeout), checked("7"), listed9},
			queue: []string{replaced5, "bookmark 18446744073709551615", "replace 9, new history:"},
		},
	})
}

// TestP16_RefusalsAreNoContact has the server, or a proxy, answer with an error for a while, and then
// be at an older state. A server that has just started with a restored backup refuses requests too.
func TestP16_RefusalsAreNoContact(t *testing.T) {
	busy, refused := []string{"watch 5", "watch 5", "watch 5", "watch 5"}, []string{"watch 5", "watch 5", look, "watch 5", look}
	for name, test := range map[string]struct {
		err  error
		asks []string
	}{"too many requests": {errTooMany(6), busy}, "forbidden": {errForbidden, refused}, "internal error": {errInternal, refused}} {
		answers := []answer{listed(fails(errCut))}
		for _, request := range test.asks {
			answers = append(answers, failed(request, test.err))
		}
		t.Run(name, scenario{
			o:       Options[object]{Transport: source.Transport{Backoff: source.Backoff{Max: 4 * time.Second}}},
			answers: append(answers, watched("5"), checked("3"), relisted4), queue: []string{replaced5, rewound4},
		}.run)
	}
}

// TestP1_CheckThatAlwaysFailsDoesNotEndTheWatching has servers that can be watched and not
// listed, after a watch that brought nothing: the next watch begins after a few checks.
func TestP1_CheckThatAlwaysFailsDoesNotEndTheWatching(t *testing.T) {
	for name, err := range map[string]error{"refused": errForbidden, "failing": errInternal, "malformed": errUnreadable} {
		fails := failed(look, err)
		t.Run(name, scenario{
			answers: []answer{
				listed(read{err: errCut}), quiet5, fails, fails, fails,
				watched("5", sendsAfter(time.Second, "+b@6"), failsAfter(time.Minute, io.EOF)), fails,
				watched("6", failsAfter(time.Minute, io.EOF)), fails, watched("6"), fails,
			},
			queue: []string{replaced5, "push 6: set b@6"},
			check: unless(func(h health.Watch) bool {
				return h.State != health.StateWatching
			}),
		}.run)
	}
}

// TestP16_ReflectorThatTakesAnothersPlaceFindsARewind has a queue that has reached a newer
// version with an earlier reflector, and a server that was set back meanwhile.
func TestP16_ReflectorThatTakesAnothersPlaceFindsARewind(t *testing.T) {
	empty := func(request string) answer { return page(request, "5", "", "") }
	var reported []string
	streams := Options[object]{OnFailure: func(ended Step, _ error) { reported = append(reported, string(ended)) }}
	pages := streams
	pages.NoStreamedLists = true
	reports := func(want ...string) checker {
		return func(t *testing.T, _ *Reflector[object], _ *script, _ *journal) {
			same(t, "reported", reported, want...)
			reported = nil
		}
	}
	scenarios(t, map[string]scenario{
		"streamed": {j: &journal{older: true}, o: streams, answers: []answer{listed(), listed()},
			queue: []string{replaced5, "replace 5, new history: a@3"}, check: reports("streamed list")},
		"in pages": {j: &journal{older: true}, o: pages, answers: []answer{empty(first), empty(later), empty(later), watched("5")},
			queue: []string{"replace 5:", "replace 5:", "replace 5, new history:"}, check: reports("list", "list")},
	})
}

// TestP15_SilentWatches closes a watch that outlives its timeout, or that is quiet for several of
// its own periods between bookmarks, and no other.
func TestP15_SilentWatches(t *testing.T) {
	var regular []read
	for i := range 40 {
		after := time.Minute
		if i%10 == 9 {
			after = 3 * time.Minute // two of them are missing
		}
		regular = append(regular, sendsAfter(after, fmt.Sprint("*", 6+i)))
	}
	lastError := func(want error) func(*testing.T, *Reflector[object], *script, *journal) {
		return unless(func(h health.Watch) bool {
			return h.State != health.StateWatching || !errors.Is(h.LastError, want)
		})
	}
	scenarios(t, map[string]scenario{
		"outlives its timeout": {
			o: Options[object]{Transport: source.Transport{WatchTimeout: time.Minute}}, pass: 151*time.Second - 89*time.Second,
			answers: []answer{listed(), watched("5"), checked("5")}, check: lastError(errOutlived),
			during: func(_ *Reflector[object], s *script) {
				after(89 * time.Second)
				same(t, "requests within the timeout", s.requests(), "stream")
			},
		},
		"quiet for four periods": {
			answers: []answer{
				listed(sendsAfter(time.Minute, "*6"), sendsAfter(50*time.Second, "*7"), sendsAfter(time.Minute, "*8")),
				watched("8", sendsAfter(time.Minute, "*9")), checked("8"), watched("9"), checked("9"),
			},
			check: lastError(errQuiet),
			during: func(_ *Reflector[object], s *script) {
				after(170*time.Second + 4*time.Minute - time.Second)
				same(t, "requests after four periods", s.requests(), "stream")
				after(5 * time.Minute)
				same(t, "requests after a bookmark", s.requests(), "stream", "watch 8", look)
			},
			pass: 3 * time.Minute,
		},
		"quiet for four periods of the watch before": {
			answers: []answer{
				listed(sendsAfter(time.Minute, "*6"), sendsAfter(time.Minute, "*7"), fails(errCut)),
				watched("7", sendsAfter(time.Minute, "~a@8")),
				watched("8", sendsAfter(time.Minute, "*9"), sendsAfter(2*time.Minute, "*10")), checked("8"),
				watched("10"), checked("10"),
			},
			check: lastError(errQuiet), pass: (2+5+3+8)*time.Minute + 30*time.Second,
		},
		"is not begun": {
			answers: []answer{listed(fails(errCut)), {expect: "watch 5", hang: true}, watched("5"), checked("5")},
			check:   lastError(source.ErrSilent),
			during: func(_ *Reflector[object], s *script) {
				after(2 * time.Minute)
				same(t, "requests", s.requests(), "stream", "watch 5")
			},
		},
		"keeps its period":         {answers: []answer{listed(regular...)}, pass: 48 * time.Minute},
		"bookmarks close together": {answers: []answer{listed(sendsAfter(time.Second, "*6"), sendsAfter(time.Millisecond, "*7"), sendsAfter(29*time.Second, "*8"))}, pass: time.Minute},
		"queue that is full": {
			j:       &journal{full: 20 * time.Minute},
			answers: []answer{listed(sendsAfter(time.Minute, "*6"), sendsAfter(time.Minute, "*7"), sends("~a@8"), sendsAfter(time.Minute, "*9"))},
			pass:    24 * time.Minute, queue: []string{replaced5, "bookmark 6", "bookmark 7", "push 8: set a@8", "bookmark 9"},
		},
	})
}

// TestPanicClosesTheWatch: a panic of a function of Options ends Run, and the stream.
func TestPanicClosesTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streamed context.Context
		server := &uselessServer{open: func(ctx context.Context, _ string) (source.Stream[object], error) {
			streamed = ctx
			return &scriptedStream{ctx: ctx, reads: []read{sends("~a@6")}}, nil
		}}
		r := New(server, &journal{}, Options[object]{Transport: source.Transport{NoStreamedLists: true}, Accept: func(i source.Item[object], _ bool) error {
			if i.Version == "6" {
				panic("no")
			}
			return nil
		}})
		func() {
			defer func() { _ = recover() }()
			_ = r.Run(t.Context())
			t.Error("Run returned")
		}()
		if streamed.Err() == nil || r.Health().State != health.StateStopped {
			t.Errorf("the watch runs on; health is %+v", r.Health())
		}
	})
}

// cacheOf is a cache by key, which gives the queue the known state.
type cacheOf map[string]object

func (c cacheOf) Get(key string) (object, bool) { o, ok := c[key]; return o, ok }

func (c cacheOf) Prefix(string) iter.Seq2[string, object] { return maps.All(c) }

func (c cacheOf) apply(b *delta.Batch[object]) {
	for _, d := range b.Changes {
		if c[d.Key] = d.New; d.Type == change.Deleted {
			delete(c, d.Key)
		}
	}
}

// TestP16_OptionalResourceThatComesBackWithAnOlderHistory has a server that is set back to a
// state from before the resource was defined, and then it is defined again.
func TestP16_OptionalResourceThatComesBackWithAnOlderHistory(t *testing.T) {
	answers := append([]answer{listed(fails(errCut)), failed("watch 5", errNotFound)}, slices.Repeat([]answer{failed("stream", errNotFound)}, 20)...)
	answers = append(answers, streamed(sends("+a@1 =2"), sendsAfter(time.Second, "+b@4")))
	synctest.Test(t, func(t *testing.T) {
		cache := cacheOf{}
		queue, err := delta.New(delta.Options[object]{
			Known:    func() delta.Known[object] { return cache },
			Describe: func(o object) (version, uid string) { return o.version, "uid-" + o.name },
			Compare:  delta.CompareDecimal, Partitions: []string{""},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := New(&script{t: t, answers: answers}, Queue[object](queue), Options[object]{Optional: true})
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for queue.Pop(ctx, cache.apply) == nil {
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		same(t, "cache", slices.Sorted(maps.Keys(cache)), "a", "b")
	})
}
